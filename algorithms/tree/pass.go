package tree

import (
	"fmt"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func allGather(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	tree, n := p.treeOf(c.Size(), 0), p.chunks(c.Shape().Bytes)
	if err := c.Copy(c.OutBlock(c.Rank()), c.In()); err != nil {
		return err
	}
	for source := range c.Size() {
		if err := passUp(c, tree, c.OutBlock(source), n, source); err != nil {
			return fmt.Errorf("input of rank %d: %w", source, err)
		}
	}
	// The last source first: the ranks below a rank have higher numbers than the rank
	// itself, so that it passes on most of what it has before it has to wait.
	for source := c.Size() - 1; source >= 0; source-- {
		if err := passDown(c, tree, c.OutBlock(source), n, source); err != nil {
			return fmt.Errorf("input of rank %d: %w", source, err)
		}
	}
	return nil
}

func broadcast(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	return passDown(c, p.treeOf(c.Size(), c.Root()), c.Out(), p.chunks(c.Shape().Bytes), c.Root())
}

// passUp sends b from source up to the root.
func passUp(c *ccl.Call, tree topology.Tree, b ccl.Buffer, n, source int) error {
	child, ok := tree.Branch(c.Rank(), source)
	if !ok && c.Rank() != source {
		return nil // source is not below this rank
	}
	parent, _ := tree.Parent(c.Rank())
	if err := steps.Chain(c, child, parent, n, b.Block, nil); err != nil {
		return fmt.Errorf("up, %w", err)
	}
	return nil
}

// passDown sends b down to all ranks except source and those above it, which have it.
func passDown(c *ccl.Call, tree topology.Tree, b ccl.Buffer, n, source int) error {
	child, ok := tree.Branch(c.Rank(), source)
	parent, _ := tree.Parent(c.Rank())
	if ok || c.Rank() == source {
		parent = topology.None
	}
	for i := range n + 1 {
		if err := serve(c, tree, b, i, n, child, parent); err != nil {
			return fmt.Errorf("down, chunk %d: %w", i, err)
		}
	}
	return nil
}

// serve sends chunk i-1 of b to all children except has, to the last of them while chunk
// i comes in from rank `from`.
func serve(c *ccl.Call, tree topology.Tree, b ccl.Buffer, i, n, has, from int) error {
	last := topology.None
	for k := 0; i > 0 && k < tree.Degree(c.Rank()); k++ {
		child := tree.Served(c.Rank(), k)
		if child == has {
			continue
		}

		if last != topology.None {
			if err := c.Send(last, b.Block(i-1, n)); err != nil {
				return err
			}
		}
		last = child
	}
	return steps.ChainStep(c, from, last, i, n, b.Block, nil)
}
