package tree

import (
	"fmt"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func allReduce(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	tree, n := p.treeOf(c.Size(), 0), p.chunks(c.Shape().Bytes)
	if err := reduceUp(c, tree, n, c.Out().Block); err != nil {
		return err
	}
	return passDown(c, tree, c.Out(), n, 0)
}

func reduce(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	tree, n := p.treeOf(c.Size(), c.Root()), p.chunks(c.Shape().Bytes)
	if c.Rank() == c.Root() {
		return reduceUp(c, tree, n, c.Out().Block)
	}
	return reduceUp(c, tree, n, steps.TwoChunks(c, c.Scratch(2*c.In().Block(0, n).Len())))
}

// reduceScatter reduces to rank 0, which deals the result out.
func reduceScatter(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	tree, n := p.treeOf(c.Size(), 0), p.chunks(c.Shape().Bytes)
	length := c.In().Len()
	if c.Rank() > 0 {
		length = 2 * c.In().Block(0, n).Len()
	}
	bundle := bundleLen(c, tree, c.Rank())
	spare := c.Scratch(length + bundle)
	reduced := spare.Slice(0, length)

	have := steps.TwoChunks(c, reduced)
	if c.Rank() == 0 {
		have = reduced.Block
	}
	if err := reduceUp(c, tree, n, have); err != nil {
		return err
	}
	return dealOut(c, tree, spare.Slice(length, length+bundle), func(rank int) ccl.Buffer {
		at := c.InRange(0, rank)
		return reduced.Slice(at.Lo, at.Hi)
	})
}

// reduceUp reduces all inputs to the root and applies the epilogue. have returns the
// memory in which this rank reduces chunk i of n: at least two chunks, on the root all.
func reduceUp(c *ccl.Call, tree topology.Tree, n int, have func(i, n int) ccl.Buffer) error {
	if tree.Degree(c.Rank()) == 0 {
		have = c.In().Block
	}
	for i := range n + 1 {
		if err := reduceChunk(c, tree, i, n, have); err != nil {
			return fmt.Errorf("up, chunk %d: %w", i, err)
		}
	}
	return nil
}

// reduceChunk reduces chunk i of this rank's input with the children's chunks, in the order of the
// children, while chunk i-1 goes to the parent.
func reduceChunk(c *ccl.Call, tree topology.Tree, i, n int, have func(i, n int) ccl.Buffer) error {
	me, first := c.Rank(), topology.None
	parent, hasParent := tree.Parent(me)
	if tree.Degree(me) > 0 {
		first = tree.Child(me, 0)
	}
	err := steps.ChainStep(c, first, parent, i, n, have, c.In().Block)
	if err != nil || i == n || first == topology.None {
		return err
	}

	chunk := have(i, n)
	for k := 1; k < tree.Degree(me); k++ {
		if err := c.RecvReduce(tree.Child(me, k), chunk, chunk); err != nil {
			return err
		}
	}
	if !hasParent {
		c.Epilogue(chunk)
	}
	return nil
}
