package ccl

import "hash/maphash"

// With debug in the configuration, buffers are looked at while they belong to a call: a
// sum is made of what is in them when the call is begun, and again when its turn comes;
// and of its inputs once more when it is done.

var seal = maphash.MakeSeed()

// sums are those of a call's buffers.
type sums struct {
	on          bool
	all, inputs uint64
}

// seal remembers what is in the buffers.
func (a *arguments) seal(c *Communicator) {
	if c.selector.Debug() {
		a.sums = sums{true, a.sum(a.send, a.recv), a.sum(a.send)}
	}
}

// atTurn says that the call was refused before its turn came, or that somebody has changed a
// buffer since.
func (a *arguments) atTurn() error {
	if a.refused != nil {
		return a.refused
	}
	if !a.sums.on || a.sum(a.send, a.recv) == a.sums.all {
		return nil
	}
	return a.changed("before its turn came")
}

// atEnd says that somebody has changed an input while the call ran, where that is not an
// output as well.
func (a *arguments) atEnd() error {
	if !a.sums.on || a.tensors != nil || overlap(a.send.data, a.recv.data) || a.sum(a.send) == a.sums.inputs {
		return nil
	}
	return a.changed("while it ran")
}

func (a *arguments) changed(when string) error {
	return &InvalidArgumentError{a.coll.String(), "a buffer was changed after the call was begun and " + when +
		"; buffers belong to the call until its Work is done (found because of defaults.debug)"}
}

func (a *arguments) sum(buffers ...Buffer) uint64 {
	var h maphash.Hash
	h.SetSeed(seal)
	for _, b := range buffers {
		h.Write(b.data)
	}
	for _, b := range a.tensors {
		h.Write(b.data)
	}
	return h.Sum64()
}
