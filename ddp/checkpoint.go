package ddp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/atomicfile"
	"github.com/goccl/goccl/internal/jsonfloat"
)

// CheckpointError says why a checkpoint could not be written or was refused. All ranks get it.
type CheckpointError struct {
	Path   string
	Reason string
	Err    error // the cause, on the ranks that have it; on all: fs.ErrNotExist, and *ccl.MismatchError if ranks differ
}

func (e *CheckpointError) Error() string {
	return fmt.Sprintf("ddp: checkpoint %s: %s", e.Path, e.Reason)
}

func (e *CheckpointError) Unwrap() error { return e.Err }

// Save writes a checkpoint: the parameters, the buffers ("buffer.0", ...), more tensors, such as an
// optimizer's, which have names of their own, and state, anything that encoding/json takes, such as the
// epoch and the step. Rank 0 writes what it has; all ranks call Save and get its error. The file replaces an
// older one at once, or not at all.
//
// A rank that does not call Save within the group's timeout is a *ccl.TimeoutError of the others.
// While rank 0 writes, they wait for as long as it takes, with warnings (dist.WithLogger).
//
// Parameters that differ between ranks are a *CheckpointError, in which errors.As finds a
// *ccl.MismatchError, and the file stays: see Verify. A loop whose ranks differ by design calls Save
// after its outer step, in which they become equal.
//
// The file has the safetensors format, which torch reads as well; its metadata has the version, a
// checksum and state. Infinities and NaN in state are strings, "Infinity", "-Infinity" and "NaN",
// which Load reads back into floats.
//
// The file has the mode of the one that it replaces; a new one has 0666 under the umask. The file
// behind a link is replaced. A link that leads to no file, another kind of file, and what Load
// would refuse are *CheckpointErrors, and the file stays: names that are not UTF-8, shapes that do
// not have the tensor's elements, and a state of more than 100 MB. While a rank writes, a temporary
// file (.goccl-...) lies beside the file; the next Save of the file removes what a killed process
// has left of its own.
//
// Within Join and between Ready and Wait, Save is an *ccl.InvalidArgumentError of this rank. After the
// end of the Reducer or of its group it is ccl.ErrClosed.
func (r *Reducer[T]) Save(ctx context.Context, path string, state any, more ...Parameter[T]) error {
	if err := r.beginCheckpoint("Save"); err != nil {
		return err
	}
	defer r.comm.Release()
	if err := r.awaitRanks(ctx, "ddp.Save"); err != nil {
		return err
	}
	if differ, err := r.compareParameters(ctx); err != nil {
		return fmt.Errorf("ddp: %w", err)
	} else if differ != nil {
		return &CheckpointError{path, differ.Error(), differ}
	}
	var failed *CheckpointError
	if r.comm.Rank() == 0 {
		tensors := r.tensors(more)
		text, err := jsonfloat.Encode(state)
		if err != nil {
			err = fmt.Errorf("the state: %w", err)
		} else {
			err = atomicfile.Replace(path, true, func(f *os.File) error { return writeTensors(f, tensors, text) })
		}
		if err != nil {
			failed = &CheckpointError{path, err.Error(), err}
		}
	}
	if err := r.awaitRanks(ctx, "ddp.Save: rank 0 writes", dist.WithCallTimeout(-1)); err != nil {
		return err
	}
	return r.outcome(unending(ctx), path, failed)
}

// Load reads a checkpoint that Save wrote with the same parameters, buffers and more tensors. All ranks call Load,
// and each reads the file. state is a pointer to what was saved, which becomes the new value as a whole (fields that the
// file does not have become zero), or nil.
//
// Load changes tensors and state on all ranks or on none. A file that is torn, foreign, of another version or of
// another model on any rank is a *CheckpointError on all, and so are files that differ: it names the rank and the
// first tensor. It is fs.ErrNotExist if no rank has the file.
//
// A rank that does not call Load within the group's timeout is a *ccl.TimeoutError of the others.
// For ranks that read, they wait for as long as it takes, with warnings (dist.WithLogger).
//
// It has the errors of Save within Join, between Ready and Wait, and after the end.
func (r *Reducer[T]) Load(ctx context.Context, path string, state any, more ...Parameter[T]) error {
	if err := r.beginCheckpoint("Load"); err != nil {
		return err
	}
	defer r.comm.Release()
	if err := r.awaitRanks(ctx, "ddp.Load"); err != nil {
		return err
	}
	tensors := r.tensors(more)
	c, err := readFile(path, tensors)
	var assign func()
	if err == nil && state != nil {
		assign, err = unmarshal(c.state, state)
	}
	if err := r.awaitRanks(ctx, "ddp.Load: ranks read", dist.WithCallTimeout(-1)); err != nil {
		return err
	}
	if err := r.agreeOn(unending(ctx), path, c, err); err != nil {
		return err
	}
	for i, t := range tensors {
		copy(t.Data, c.values[i])
	}
	if assign != nil {
		assign()
	}
	return nil
}

// beforeAgreement runs before the last call of Save and Load. Tests set it.
var beforeAgreement = func() {}

// unending returns a context for the last call of Save and Load, to which all ranks come at once.
// One that ended within it could fail on this rank what has succeeded on others.
func unending(ctx context.Context) context.Context {
	beforeAgreement()
	return context.WithoutCancel(ctx)
}

// unmarshal returns a function that sets *state to what text says.
func unmarshal(text string, state any) (assign func(), err error) {
	to := reflect.ValueOf(state)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return nil, fmt.Errorf("its state: %w", &json.InvalidUnmarshalError{Type: to.Type()})
	}
	read, err := jsonfloat.Decode([]byte(text), to.Type().Elem())
	if err != nil {
		return nil, fmt.Errorf("its state: %w", err)
	}
	return func() { to.Elem().Set(read) }, nil
}

// report is what a rank has read, for the others.
type report struct {
	Failed   bool
	Absent   bool // there is no such file
	Reason   string
	Tensors  []string
	State    string // its first 80 characters
	Checksum string
}

// agreeOn returns nil if all ranks have read the same, and otherwise an error on all. failed is why this rank has not.
func (r *Reducer[T]) agreeOn(ctx context.Context, path string, c contents[T], failed error) error {
	mine := report{Tensors: c.tensors, State: fmt.Sprintf("%.80s", c.state), Checksum: c.checksum}
	if failed != nil {
		mine = report{Failed: true, Absent: errors.Is(failed, fs.ErrNotExist), Reason: failed.Error()}
	}
	all, err := dist.AllGatherObject(mine, dist.WithGroup(r.group), dist.WithContext(ctx), dist.WithKey("ddp.Load"))
	if err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	if first := slices.IndexFunc(all, func(o report) bool { return o.Failed }); first >= 0 {
		reason := all[first].Reason
		if slices.ContainsFunc(all, func(o report) bool { return o.Reason != reason }) {
			reason = fmt.Sprintf("rank %d: %s", first, reason)
		}
		if mine.Absent && slices.ContainsFunc(all, func(o report) bool { return !o.Absent }) {
			failed = nil // programs start anew where fs.ErrNotExist is the error, and another rank has the file
		}
		return &CheckpointError{path, reason, failed}
	}
	if err := compareContents(all); err != nil {
		return &CheckpointError{path, err.Error(), err}
	}
	return nil
}

// compareContents returns a *ccl.MismatchError if ranks have read different files.
func compareContents(all []report) error {
	longest := 0
	for _, o := range all {
		longest = max(longest, len(o.Tensors))
	}
	for i := range longest {
		if err := sameOnAll(all, fmt.Sprintf("tensor %d", i), func(o report) string {
			if i >= len(o.Tensors) {
				return fmt.Sprintf("none (it has %d)", len(o.Tensors))
			}
			return o.Tensors[i]
		}); err != nil {
			return err
		}
	}
	if err := sameOnAll(all, "state", func(o report) string { return o.State }); err != nil {
		return err
	}
	return sameOnAll(all, "checksum", func(o report) string { return o.Checksum })
}

// awaitRanks returns when all ranks have called it, or an error.
func (r *Reducer[T]) awaitRanks(ctx context.Context, label string, opts ...dist.CallOption) error {
	if err := dist.Barrier(append(opts, dist.WithGroup(r.group), dist.WithContext(ctx), dist.WithLabel(label), dist.WithKey(label))...); err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	return nil
}

// tensors returns what a checkpoint contains.
func (r *Reducer[T]) tensors(more []Parameter[T]) []Parameter[T] {
	all := slices.Clone(r.params)
	for i, b := range r.opts.Buffers {
		all = append(all, Parameter[T]{Name: fmt.Sprint(bufferPrefix, i), Data: b})
	}
	return append(all, more...)
}

// bufferPrefix begins the names of buffers.
const bufferPrefix = "buffer."

// outcome tells all ranks rank 0's error.
func (r *Reducer[T]) outcome(ctx context.Context, path string, failed *CheckpointError) error {
	reason := ""
	if failed != nil {
		reason = failed.Reason
	}
	if err := dist.BroadcastObject(&reason, r.comm.GlobalRank(0), dist.WithGroup(r.group), dist.WithContext(ctx), dist.WithKey("ddp.Save")); err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	switch {
	case failed != nil:
		return failed
	case reason != "":
		return &CheckpointError{Path: path, Reason: reason}
	}
	return nil
}
