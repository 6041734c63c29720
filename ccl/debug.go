package ccl

import "hash/maphash"

// With debug in the configuration, buffers are looked at while they belong to a call:
// a sum of a Work's inputs is made when it is begun, and again when its turn comes.

var seal = maphash.MakeSeed()

// seal remembers what is in the inputs.
func (a *arguments) seal(c *Communicator) {
	if c.settings.debug.value {
		a.opts[0].sum = a.sum()
	}
}

// check says that somebody changed the inputs since.
func (a *arguments) check(c *Communicator) error {
	if !c.settings.debug.value || a.sum() == a.opts[0].sum {
		return nil
	}
	return &InvalidArgumentError{a.coll.String(), "an input was changed after the call was begun and before it was done; " +
		"buffers belong to the call until its Work is done (found because of defaults.debug)"}
}

func (a *arguments) sum() uint64 {
	var h maphash.Hash
	h.SetSeed(seal)
	h.Write(a.send.data)
	if a.coll == CollBroadcast {
		h.Write(a.recv.data)
	}
	for _, b := range a.tensors {
		h.Write(b.data)
	}
	return h.Sum64()
}
