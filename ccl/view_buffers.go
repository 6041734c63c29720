package ccl

import (
	"fmt"

	"github.com/goccl/goccl/transport"
)

// buffers are inputs in the ranks' own memory. There is one piece, of which each rank reduces a
// part, for all ranks.
type buffers struct{}

func (buffers) input(v *View, rank int) []byte {
	c := v.call
	n := c.inputBytes(rank)
	if rank == c.rank {
		return c.in.data[:n]
	}
	send, _ := c.engine.memory.Buffers(rank)
	return shown(rank, send, n)[:n]
}

func (buffers) reduceToAll(v *View, lo, hi int) error {
	c := v.call
	v.fromAll(lo, hi)
	for r := range c.Size() {
		if _, recv := c.engine.memory.Buffers(r); len(recv) > 0 {
			c.reducer.To(shown(r, recv, hi)[lo:hi])
		}
	}
	return v.finishReduction(hi - lo)
}

func (buffers) scanToAll(v *View, lo, hi int) error {
	c := v.call
	v.fromAll(lo, hi)
	for r := range c.Size() {
		_, recv := c.engine.memory.Buffers(r)
		c.reducer.To(shown(r, recv, hi)[lo:hi])
	}
	ok := c.reducer.Scan(hi-lo, c.coll == CollExScan, v.watched())
	return v.done(ok, 2*(c.Size()-1)*(hi-lo))
}

// shown returns b, a buffer of rank, if it has the n bytes that the call needs. Where ranks are
// processes its length comes from shared memory.
func shown(rank int, b []byte, n int) []byte {
	if len(b) < n {
		panic(&transport.ProtocolError{Peer: rank, Text: fmt.Sprintf("it shows a buffer of %d bytes where this rank expects %d", len(b), n)})
	}
	return b
}
