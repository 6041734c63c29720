package ring

import (
	"fmt"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func allReduce(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	n := steps.Parts(c.Shape().Bytes, c.Size(), ccl.ParamsOf[Params](c).Chunk)
	for i := range n {
		out := c.Out().Block(i, n)
		reduced, err := steps.ReduceScatter(c, ring, c.In().Block(i, n), out)
		if err != nil {
			return err
		}

		c.Epilogue(reduced)
		err = steps.AllGather(c, ring, 1, func(b int) ccl.Buffer { return out.Block(b, c.Size()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// allReduceCost: each block of each part crosses 2(R-1) links.
func allReduceCost(s ccl.Shape) ccl.Cost {
	n := steps.Parts(s.Bytes, s.Ranks, s.Params.(*Params).Chunk)
	return ccl.Cost{Steps: 2 * (s.Ranks - 1) * n, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

func reduceScatter(c *ccl.Call) error {
	n := steps.Parts(c.Shape().Total, 1, ccl.ParamsOf[Params](c).Chunk)
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
// block -s-1 goes on, and block -s-2 comes in with the inputs of s+1 ranks, to which
// this rank's is added; the last one to come in is this rank's own. Partial results
// alternate between the two halves of spare.
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
	n := steps.Parts(s.Total, 1, s.Params.(*Params).Chunk)
	return ccl.Cost{Steps: (s.Ranks - 1) * n, Bytes: (s.Ranks - 1) * s.Bytes}
}
