package tree

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func allReduce(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	tree, n := p.of(c.Size(), 0), p.chunks(c.Shape().Bytes)
	if err := foldUp(c, tree, n, c.Out().Block); err != nil {
		return err
	}
	return passDown(c, tree, c.Out(), n, 0)
}

func reduce(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	tree, n := p.of(c.Size(), c.Root()), p.chunks(c.Shape().Bytes)
	if c.Rank() == c.Root() {
		return foldUp(c, tree, n, c.Out().Block)
	}
	return foldUp(c, tree, n, twoChunks(c, c.Scratch(2*c.In().Block(0, n).Len())))
}

// reduceScatter folds to rank 0, which deals the result out.
func reduceScatter(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	tree, n := p.of(c.Size(), 0), p.chunks(c.Shape().Bytes)
	length := c.In().Len()
	if c.Rank() > 0 {
		length = 2 * c.In().Block(0, n).Len()
	}
	bundle := bundleLen(c, tree, c.Rank())
	spare := c.Scratch(length + bundle)
	folded, have := spare.Slice(0, length), twoChunks(c, spare.Slice(0, length))
	if c.Rank() == 0 {
		have = folded.Block
	}
	if err := foldUp(c, tree, n, have); err != nil {
		return err
	}
	return dealOut(c, tree, spare.Slice(length, length+bundle), func(rank int) ccl.Buffer {
		at := c.InRange(0, rank)
		return folded.Slice(at.Lo, at.Hi)
	})
}

// twoChunks returns where the chunks of a vector are that are folded in the two halves
// of spare in turns.
func twoChunks(c *ccl.Call, spare ccl.Buffer) func(i, n int) ccl.Buffer {
	return func(i, n int) ccl.Buffer {
		return spare.Block(i%2, 2).Slice(0, c.In().Block(i, n).Len())
	}
}

// foldUp gives the root the finished fold of all inputs, in n chunks. have is where a
// rank folds them: it keeps at least two, and all at the root.
func foldUp(c *ccl.Call, tree topology.Tree, n int, have func(i, n int) ccl.Buffer) error {
	if tree.Degree(c.Rank()) == 0 {
		have = c.In().Block
	}
	for i := range n + 1 {
		if err := foldChunk(c, tree, i, n, have); err != nil {
			return fmt.Errorf("up, chunk %d: %w", i, err)
		}
	}
	return nil
}

// foldChunk folds chunk i of this rank's input with those of its children, in
// their order, while chunk i-1 goes on to its parent.
func foldChunk(c *ccl.Call, tree topology.Tree, i, n int, have func(i, n int) ccl.Buffer) error {
	me := c.Rank()
	parent, below := tree.Parent(me)
	children := tree.Degree(me)
	var err error
	sending, receiving := i > 0 && below, i < n && children > 0
	switch {
	case sending && receiving:
		err = c.SendRecvReduce(parent, have(i-1, n), tree.Child(me, 0), have(i, n), c.In().Block(i, n))
	case sending:
		err = c.Send(parent, have(i-1, n))
	case receiving:
		err = c.RecvReduce(tree.Child(me, 0), have(i, n), c.In().Block(i, n))
	}
	if err != nil || !receiving {
		return err
	}
	chunk := have(i, n)
	for k := 1; k < children; k++ {
		if err := c.RecvReduce(tree.Child(me, k), chunk, chunk); err != nil {
			return err
		}
	}
	if !below {
		c.Epilogue(chunk)
	}
	return nil
}
