package ring

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func broadcast(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	first, last := c.Rank() == c.Root(), ring.Next == c.Root()
	n := chunks(c.Shape().Bytes, ccl.ParamsOf[Params](c).Chunk)
	// Chunk i comes in while chunk i-1 goes on.
	var err error
	for i := range n + 1 {
		switch {
		case i < n && first:
			err = c.Send(ring.Next, c.Out().Block(i, n))
		case i < n && (last || i == 0):
			err = c.Recv(ring.Prev, c.Out().Block(i, n))
		case i < n:
			err = c.SendRecv(ring.Next, c.Out().Block(i-1, n), ring.Prev, c.Out().Block(i, n))
		case !first && !last:
			err = c.Send(ring.Next, c.Out().Block(i-1, n))
		}
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

// reduce folds along the chain that ends at the root, so that every rank sends the
// vector once. A reduce-scatter and a gather would send no less in all, and let the
// root receive nearly twice as much.
func reduce(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	n := chunks(c.Shape().Bytes, ccl.ParamsOf[Params](c).Chunk)
	switch c.Root() {
	case c.Rank():
		if err := foldAlong(c, ring.Prev, topology.None, n, c.Out().Block); err != nil {
			return err
		}
		c.Finish(c.Out())
		return nil
	case ring.Prev:
		return foldAlong(c, topology.None, ring.Next, n, c.In().Block)
	}
	longest := c.In().Block(0, n).Len()
	spare := c.Scratch(2 * longest)
	return foldAlong(c, ring.Prev, ring.Next, n, func(i, n int) ccl.Buffer {
		return spare.Block(i%2, 2).Slice(0, c.In().Block(i, n).Len())
	})
}

func scan(c *ccl.Call) error {
	n := chunks(c.Shape().Bytes, ccl.ParamsOf[Params](c).Chunk)
	prev, next := c.Rank()-1, c.Rank()+1
	if prev < 0 {
		prev = topology.None
		if err := c.Copy(c.Out(), c.In()); err != nil {
			return err
		}
	}
	if next == c.Size() {
		next = topology.None
	}
	return foldAlong(c, prev, next, n, c.Out().Block)
}

// foldAlong is one rank's part of a pipeline of n chunks: what comes from prev is
// folded with this rank's input to chunk i of have, while chunk i-1 goes on to next.
// The first rank, whose prev is topology.None, has what it sends; the last sends
// nothing. have keeps at least two chunks.
func foldAlong(c *ccl.Call, prev, next, n int, have func(i, n int) ccl.Buffer) error {
	var err error
	for i := range n + 1 {
		sending, receiving := i > 0 && next != topology.None, i < n && prev != topology.None
		switch {
		case sending && receiving:
			err = c.SendRecvReduce(next, have(i-1, n), prev, have(i, n), c.In().Block(i, n))
		case sending:
			err = c.Send(next, have(i-1, n))
		case receiving:
			err = c.RecvReduce(prev, have(i, n), c.In().Block(i, n))
		}
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

// chainCost is that of a pipeline along R ranks: the last of n chunks leaves the
// first rank after n steps and takes R-2 more to the end of the chain.
func chainCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{
		Steps: chunks(s.Bytes, s.Params.(*Params).Chunk) + s.Ranks - 2,
		Bytes: (s.Ranks - 1) * s.Bytes,
	}
}

// exScan moves every input one rank on, and folds there what comes from the ranks
// before with it: a rank can fold what it receives once, and so either with its own
// input, for the ranks behind it, or with that of the rank before, for itself.
func exScan(c *ccl.Call) error {
	n := chunks(c.Shape().Bytes, ccl.ParamsOf[Params](c).Chunk)
	spare := c.Scratch(c.In().Block(0, n).Len())
	for i := range n {
		in, out := c.In().Block(i, n), c.Out().Block(i, n)
		if err := exScanChunk(c, in, out, spare.Slice(0, in.Len())); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

func exScanChunk(c *ccl.Call, in, out, before ccl.Buffer) error {
	me, last := c.Rank(), c.Size()-1
	var err error
	switch me {
	case 0:
		return c.Send(1, in)
	case last:
		err = c.Recv(me-1, before)
	default:
		err = c.SendRecv(me+1, in, me-1, before)
	}
	switch {
	case err != nil:
		return err
	case me == 1:
		err = c.Copy(out, before)
	default:
		err = c.RecvReduce(me-1, out, before)
	}
	if err != nil || me == last {
		return err
	}
	return c.Send(me+1, out)
}

// exScanCost: with every chunk each rank but the last sends its input, and then each
// but the first the fold.
func exScanCost(s ccl.Shape) ccl.Cost {
	n := chunks(s.Bytes, s.Params.(*Params).Chunk)
	if s.Ranks == 2 {
		return ccl.Cost{Steps: n, Bytes: s.Bytes}
	}
	return ccl.Cost{Steps: 2*n + s.Ranks - 3, Bytes: (2*s.Ranks - 3) * s.Bytes}
}
