package ccl

import (
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
)

// With debug in the configuration an asynchronous call hashes its buffers when it is queued and
// again when it starts, and its inputs once more when it has ended, to find buffers that were
// changed meanwhile; so does an Isend. It also notes the line that started the call. Bools of
// other bytes than 0 and 1 are refused in all calls and messages.

var seal = maphash.MakeSeed()

// asynchronous returns the options of a call that the caller starts and does not wait for.
func (e *engine) asynchronous(o CallOption) CallOption {
	o.queued, o.work = true, nil
	if e.isDebug {
		o.started = caller(false)
	}
	return o
}

// warnOfLabels warns if ranks have entered the current call with different labels, once for each
// label of this rank: they may have made calls of one shape in different orders.
func (e *engine) warnOfLabels() {
	var others []int
	for r := range e.size {
		if (e.ep.Fingerprint(r)[0]^e.entry.Fingerprint[0])&fingerprint.LabelBits != 0 {
			others = append(others, r)
		}
	}
	label := e.call.opts.label
	if others == nil || e.journal.warned[label] {
		return
	}

	if e.journal.warned == nil {
		e.journal.warned = map[string]bool{}
	}
	e.journal.warned[label] = true
	e.journal.log(slog.LevelWarn, "ranks give one call different labels; WithKey makes that an error", "call", e.number(e.seq),
		"collective", e.call.coll, "label", label, "others", others)
}

// sums are the hashes of a call's buffers.
type sums struct {
	on          bool
	all, inputs uint64
}

// seal hashes the buffers of a call that is queued, unless the communicator is closed, which may
// have given them back.
func (w *Work) seal() {
	w.sums = sums{}
	if e := w.engine; e.isDebug && e.holds.life.HoldOpen() {
		w.sums = sums{true, w.sum(w.args.send, w.args.recv), w.sum(w.args.send)}
		_ = e.holds.drop() // Close has returned already
	}
}

// checkAtTurn returns an error if the call was rejected before its turn, or a buffer was changed
// since seal.
func (w *Work) checkAtTurn() error {
	if w.rejection != nil {
		return w.rejection
	}
	if !w.sums.on || w.sum(w.args.send, w.args.recv) == w.sums.all {
		return nil
	}
	return changed(w.args.coll.String(), "before the queued call ran")
}

// checkAtEnd returns an error if an input that is not also an output was changed while the call
// ran.
func (w *Work) checkAtEnd() error {
	a := &w.args
	if !w.sums.on || w.lists != nil && w.lists.tensors != nil || overlap(a.send.data, a.recv.data) || w.sum(a.send) == w.sums.inputs {
		return nil
	}
	return changed(a.coll.String(), "while the call ran")
}

func changed(operation, when string) error {
	return &InvalidArgumentError{operation, "a buffer was changed after the call was started and " + when +
		"; buffers belong to the call until its Work is done (found because of defaults.debug)"}
}

// inputOf returns this rank's input to a call whose arguments are not checked yet.
func (e *engine) inputOf(a *arguments) Buffer {
	if a.coll == CollBroadcast && a.root == e.rank {
		return a.recv
	}
	return a.send
}

// checkBools returns an error if an input has a bool that Go does not make: a byte other than 0 and
// 1. Compiled code takes such a bool now as true and now as false.
func checkBools(operation string, d DType, inputs ...Buffer) error {
	if d != Bool {
		return nil
	}
	for k, b := range inputs {
		i := slices.IndexFunc(b.data, func(x byte) bool { return x > 1 })
		if i < 0 {
			continue
		}

		name := "the input"
		if len(inputs) > 1 {
			name = fmt.Sprint("tensor ", k)
		}
		return &InvalidArgumentError{operation, fmt.Sprintf("element %d of %s is a bool with the byte %d, which must be 0 or 1 (found because of defaults.debug)", i, name, b.data[i])}
	}
	return nil
}

func (w *Work) sum(buffers ...Buffer) uint64 {
	var h maphash.Hash
	h.SetSeed(seal)
	for _, b := range buffers {
		h.Write(b.data)
	}
	if w.lists != nil {
		for _, b := range w.lists.tensors {
			h.Write(b.data)
		}
	}
	return h.Sum64()
}
