package ring

import (
	"fmt"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func broadcast(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	n := steps.Parts(c.Shape().Bytes, 1, ccl.ParamsOf[Params](c).Chunk)
	from, to := ring.Prev, ring.Next
	switch c.Root() {
	case c.Rank():
		from = topology.None
	case to:
		to = topology.None
	}
	return steps.Chain(c, from, to, n, c.Out().Block, nil)
}

// reduce runs along the chain that ends at the root, so that every rank sends the vector
// once. A reduce-scatter followed by a gather would send no less, and the root would
// receive nearly twice as much.
func reduce(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	n := steps.Parts(c.Shape().Bytes, 1, ccl.ParamsOf[Params](c).Chunk)
	switch c.Root() {
	case c.Rank():
		if err := steps.Chain(c, ring.Prev, topology.None, n, c.Out().Block, c.In().Block); err != nil {
			return err
		}
		c.Epilogue(c.Out())
		return nil
	case ring.Prev:
		return steps.Chain(c, topology.None, ring.Next, n, c.In().Block, nil)
	}

	spare := c.Scratch(2 * c.In().Block(0, n).Len())
	return steps.Chain(c, ring.Prev, ring.Next, n, steps.TwoChunks(c, spare), c.In().Block)
}

// chainCost returns the cost of a pipeline along R ranks: the last of n chunks leaves the
// first rank after n steps and takes R-2 more to the end of the chain.
func chainCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{
		Steps: steps.Parts(s.Bytes, 1, s.Params.(*Params).Chunk) + s.Ranks - 2,
		Bytes: (s.Ranks - 1) * s.Bytes,
	}
}

// scan runs along the chain from rank 0 to the last: what comes from the rank before is
// the left operand of this rank's input, and the result goes on.
func scan(c *ccl.Call) error {
	n := steps.Parts(c.Shape().Bytes, 1, ccl.ParamsOf[Params](c).Chunk)
	spare := c.Scratch(c.In().Block(0, n).Len())
	return passOn(c, n, spare, c.Out().Block, func(in, out, before, have ccl.Buffer) error {
		if c.Rank() == 0 {
			return c.Copy(out, in)
		}
		return c.Reduce(out, before, in)
	})
}

// exScan is scan, but what comes is the result, and what goes on lies in scratch memory.
func exScan(c *ccl.Call) error {
	n := steps.Parts(c.Shape().Bytes, 1, ccl.ParamsOf[Params](c).Chunk)
	if c.Rank() == 0 {
		return steps.Chain(c, topology.None, 1, n, c.In().Block, nil)
	}
	spare := c.Scratch(2 * c.In().Block(0, n).Len())
	going := func(i, n int) ccl.Buffer { return spare.Block(1, 2).Slice(0, c.In().Block(i, n).Len()) }
	return passOn(c, n, spare.Block(0, 2), going, func(in, out, before, have ccl.Buffer) error {
		if c.Rank() < c.Size()-1 {
			if err := c.Reduce(have, before, in); err != nil {
				return err
			}
		}
		return c.Copy(out, before) // out may be in
	})
}

// passOn is one rank's part of a pipeline of n chunks from rank 0 to the last. Chunk i-1
// of have goes to the next rank while chunk i comes from the rank before, into spare;
// then reduce makes chunk i of have of it.
func passOn(c *ccl.Call, n int, spare ccl.Buffer, have func(i, n int) ccl.Buffer, reduce func(in, out, before, have ccl.Buffer) error) error {
	for i := range n + 1 {
		to, from := topology.None, topology.None
		var sent, in, before ccl.Buffer
		if i > 0 && c.Rank() < c.Size()-1 {
			to, sent = c.Rank()+1, have(i-1, n)
		}
		if i < n {
			in = c.In().Block(i, n)
		}
		if i < n && c.Rank() > 0 {
			from, before = c.Rank()-1, spare.Slice(0, in.Len())
		}

		err := steps.SendRecv(c, to, sent, from, before)
		if err == nil && i < n {
			err = reduce(in, c.Out().Block(i, n), before, have(i, n))
		}
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}
