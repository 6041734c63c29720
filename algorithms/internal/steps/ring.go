package steps

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// ReduceScatter cuts in and out into one block for each rank of the ring and reduces
// every block around the ring: in step s block -s goes to Next, and block -s-1 comes from
// Prev with the inputs of s+1 ranks, to which this rank's is added. It returns block 1,
// which is then complete: in out, or in a ring of one rank, in in. The other blocks of out
// hold partial results.
func ReduceScatter(c *ccl.Call, ring topology.Ring, in, out ccl.Buffer) (ccl.Buffer, error) {
	n, have := ring.Size, in
	for s := range n - 1 {
		send, recv := ring.Block(-s), ring.Block(-s-1)
		err := c.SendRecvReduce(ring.Next, have.Block(send, n), ring.Prev, out.Block(recv, n), in.Block(recv, n))
		if err != nil {
			return ccl.Buffer{}, fmt.Errorf("reduce-scatter, step %d: %w", s, err)
		}
		have = out
	}
	return have.Block(ring.Block(1), n), nil
}

// AllGather passes the block of every rank around the ring, beginning with the one that
// this rank has, ring.Block(first). block returns the memory of block i.
func AllGather(c *ccl.Call, ring topology.Ring, first int, block func(i int) ccl.Buffer) error {
	for s := range ring.Size - 1 {
		send, recv := ring.Block(first-s), ring.Block(first-s-1)
		if err := c.SendRecv(ring.Next, block(send), ring.Prev, block(recv)); err != nil {
			return fmt.Errorf("all-gather, step %d: %w", s, err)
		}
	}
	return nil
}
