package ring

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// rounds returns in how many parts of at most R chunks a vector goes around.
func rounds(bytes, ranks int, chunk ccl.ByteSize) int {
	return max(1, (bytes+ranks*int(chunk)-1)/(ranks*int(chunk)))
}

func allReduce(c *ccl.Call) error {
	n := rounds(c.Shape().Bytes, c.Size(), ccl.ParamsOf[Params](c).Chunk)
	for i := range n {
		if err := allReducePart(c, c.In().Block(i, n), c.Out().Block(i, n)); err != nil {
			return err
		}
	}
	return nil
}

func allReducePart(c *ccl.Call, in, out ccl.Buffer) error {
	n := c.Size()
	ring := topology.NewRing(n, c.Rank())

	// Reduce-scatter: in step s block -s goes on, and block -s-1 comes in with
	// the fold of s+1 ranks, to which this rank's input is added. After n-1 steps
	// this rank holds block 1 fully reduced.
	have := in
	for s := range n - 1 {
		send, recv := ring.Block(-s), ring.Block(-s-1)
		err := c.SendRecvReduce(ring.Next, have.Block(send, n), ring.Prev, out.Block(recv, n), in.Block(recv, n))
		if err != nil {
			return fmt.Errorf("reduce-scatter, step %d: %w", s, err)
		}
		have = out
	}
	c.Epilogue(out.Block(ring.Block(1), n))

	// All-gather: pass the reduced blocks on, starting with our own.
	for s := range n - 1 {
		send, recv := ring.Block(1-s), ring.Block(-s)
		if err := c.SendRecv(ring.Next, out.Block(send, n), ring.Prev, out.Block(recv, n)); err != nil {
			return fmt.Errorf("all-gather, step %d: %w", s, err)
		}
	}
	return nil
}

// allReduceCost: each block of each round crosses 2(R-1) links.
func allReduceCost(s ccl.Shape) ccl.Cost {
	n := rounds(s.Bytes, s.Ranks, s.Params.(*Params).Chunk)
	return ccl.Cost{Steps: 2 * (s.Ranks - 1) * n, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

func reduceScatter(c *ccl.Call) error {
	n := chunks(c.Shape().Total, ccl.ParamsOf[Params](c).Chunk)
	longest := 0
	for r := range c.Size() {
		longest = max(longest, c.InBlock(r).Block(0, n).Len())
	}
	spare := c.Scratch(2 * longest)
	for i := range n {
		if err := reduceScatterPart(c, i, n, spare); err != nil {
			return err
		}
	}
	return nil
}

// reduceScatterPart does part i of the n into which every block is cut. In step s
// block -s-1 goes on, and block -s-2 comes in with the fold of s+1 ranks, to which
// this rank's input is added; the last to come in is this rank's own. What is folded
// on the way lies in the two halves of spare in turns.
func reduceScatterPart(c *ccl.Call, i, n int, spare ccl.Buffer) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	out := c.Out().Block(i, n)
	have := c.InBlock(ring.Prev).Block(i, n)
	for s := range c.Size() - 1 {
		with := c.InBlock(ring.Block(-s-2)).Block(i, n)
		next := spare.Block(s%2, 2).Slice(0, with.Len())
		if s == c.Size()-2 {
			next = out
		}
		if err := c.SendRecvReduce(ring.Next, have, ring.Prev, next, with); err != nil {
			return fmt.Errorf("part %d, step %d: %w", i, s, err)
		}
		have = next
	}
	c.Epilogue(out)
	return nil
}

// reduceScatterCost: each part of each block crosses R-1 links.
func reduceScatterCost(s ccl.Shape) ccl.Cost {
	n := chunks(s.Total, s.Params.(*Params).Chunk)
	return ccl.Cost{Steps: (s.Ranks - 1) * n, Bytes: (s.Ranks - 1) * s.Bytes}
}
