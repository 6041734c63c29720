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
		c.Epilogue(c.Out())
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

// foldAlong is one rank's part of a reduction's pipeline of n chunks: what comes from
// prev is folded with this rank's input to chunk i of have, while chunk i-1 goes on to
// next.
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

// scan folds along the ring from rank 0 on: what comes from the rank before stands
// on the left of this rank's input, and both together go on.
func scan(c *ccl.Call) error {
	n := chunks(c.Shape().Bytes, ccl.ParamsOf[Params](c).Chunk)
	spare := c.Scratch(c.In().Block(0, n).Len())
	return passOn(c, n, spare, c.Out().Block, func(in, out, before, have ccl.Buffer) error {
		if c.Rank() == 0 {
			return c.Copy(out, in)
		}
		return c.Reduce(out, before, in)
	})
}

// exScan is scan, but what comes is the result, and what goes on lies in spare memory.
func exScan(c *ccl.Call) error {
	n := chunks(c.Shape().Bytes, ccl.ParamsOf[Params](c).Chunk)
	if c.Rank() == 0 {
		return passOn(c, n, ccl.Buffer{}, c.In().Block, func(in, out, before, have ccl.Buffer) error { return nil })
	}
	spare := c.Scratch(2 * c.In().Block(0, n).Len())
	going := func(i, n int) ccl.Buffer { return spare.Block(1, 2).Slice(0, c.In().Block(i, n).Len()) }
	return passOn(c, n, spare.Block(0, 2), going, func(in, out, before, have ccl.Buffer) error {
		if c.Rank() < c.Size()-1 {
			if err := c.Reduce(have, before, in); err != nil {
				return err
			}
		}
		return c.Copy(out, before) // which may be in
	})
}

// passOn is one rank's part of a pipeline of n chunks from rank 0 to the last: chunk
// i-1 of have goes on while chunk i comes from the rank before, to spare, and then fold
// makes chunk i of have of it.
func passOn(c *ccl.Call, n int, spare ccl.Buffer, have func(i, n int) ccl.Buffer, fold func(in, out, before, have ccl.Buffer) error) error {
	me := c.Rank()
	for i := range n + 1 {
		var in, before ccl.Buffer
		if i < n {
			in = c.In().Block(i, n)
		}
		sending, receiving := i > 0 && me < c.Size()-1, i < n && me > 0
		if receiving {
			before = spare.Slice(0, in.Len())
		}
		var err error
		switch {
		case sending && receiving:
			err = c.SendRecv(me+1, have(i-1, n), me-1, before)
		case sending:
			err = c.Send(me+1, have(i-1, n))
		case receiving:
			err = c.Recv(me-1, before)
		}
		if err == nil && i < n {
			err = fold(in, c.Out().Block(i, n), before, have(i, n))
		}
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}
