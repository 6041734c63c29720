package ccl

import "github.com/goccl/goccl/transport"

// payloads are inputs that have travelled with the synchronisation. There is one piece, and every
// rank reduces for itself.
type payloads struct{}

func (payloads) input(v *View, rank int) []byte {
	return v.call.payloadOf(rank, v.call.inputBytes(rank))
}

// payloadOf returns rank's input, of n bytes.
func (c *Call) payloadOf(rank, n int) []byte {
	if rank == c.rank && n > transport.InlineBytes {
		return c.in.data // and not a copy, which may not be in this core's caches
	}
	return c.engine.ep.Payload(rank, n) // another rank may have written to so short an input since
}

func (payloads) reduceToAll(v *View, lo, hi int) error {
	c := v.call
	if len(c.out.data) == 0 {
		return nil
	}
	for r := range c.Size() {
		c.reducer.From(c.payloadOf(r, v.hi)[lo:hi])
	}
	c.reducer.To(c.out.data[lo:hi])
	c.reducer.Many(hi-lo, nil)
	return nil
}

func (payloads) scanToAll(v *View, lo, hi int) error { return v.scanAlone(lo, hi) }
