package tree

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// The bundle of a rank is its block followed by the bundles of its children in their
// order: the blocks of its subtree, which travel in one message.

// bundleLen returns the number of elements in rank's bundle.
func bundleLen(c *ccl.Call, tree topology.Tree, rank int) int {
	n := c.BlockLen(rank)
	for i := range tree.Degree(rank) {
		n += bundleLen(c, tree, tree.Child(rank, i))
	}
	return n
}

// bundleOf returns the range of child's bundle in the bundle of its parent.
func bundleOf(c *ccl.Call, tree topology.Tree, child int) (lo, hi int) {
	parent, _ := tree.Parent(child)
	lo = c.BlockLen(parent)
	for i := 0; tree.Child(parent, i) != child; i++ {
		lo += bundleLen(c, tree, tree.Child(parent, i))
	}
	return lo, lo + bundleLen(c, tree, child)
}

// eachBlock calls f for each block of rank's bundle.
func eachBlock(c *ccl.Call, tree topology.Tree, rank int, bundle ccl.Buffer, f func(rank int, block ccl.Buffer) error) error {
	at := c.BlockLen(rank)
	if err := f(rank, bundle.Slice(0, at)); err != nil {
		return err
	}

	for i := range tree.Degree(rank) {
		child := tree.Child(rank, i)
		n := bundleLen(c, tree, child)
		if err := eachBlock(c, tree, child, bundle.Slice(at, at+n), f); err != nil {
			return err
		}
		at += n
	}
	return nil
}

func gather(c *ccl.Call) error {
	me, tree := c.Rank(), ccl.ParamsOf[Params](c).treeOf(c.Size(), c.Root())
	parent, hasParent := tree.Parent(me)
	if hasParent && tree.Degree(me) == 0 {
		return c.Send(parent, c.In())
	}

	// Collect the bundles of the children, and this rank's block in front of them.
	bundle := c.Scratch(bundleLen(c, tree, me))
	for i := range tree.Degree(me) {
		child := tree.Served(me, tree.Degree(me)-1-i) // the lowest subtree, which is ready first
		lo, hi := bundleOf(c, tree, child)
		if err := c.Recv(child, bundle.Slice(lo, hi)); err != nil {
			return err
		}
	}
	if err := c.Copy(bundle.Slice(0, c.In().Len()), c.In()); err != nil {
		return err
	}

	// Pass the bundle on. The root unpacks it.
	if hasParent {
		return c.Send(parent, bundle)
	}
	return eachBlock(c, tree, me, bundle, func(rank int, block ccl.Buffer) error {
		return c.Copy(c.OutBlock(rank), block)
	})
}

func scatter(c *ccl.Call) error {
	tree := ccl.ParamsOf[Params](c).treeOf(c.Size(), c.Root())
	return dealOut(c, tree, c.Scratch(bundleLen(c, tree, c.Rank())), c.InBlock)
}

// dealOut sends every rank its block, which the root has in from(rank). bundle is memory
// for this rank's bundle.
func dealOut(c *ccl.Call, tree topology.Tree, bundle ccl.Buffer, from func(rank int) ccl.Buffer) error {
	me := c.Rank()
	parent, hasParent := tree.Parent(me)

	// Get the bundle: the root packs it, a leaf gets its block alone.
	var err error
	switch {
	case !hasParent:
		err = eachBlock(c, tree, me, bundle, func(rank int, block ccl.Buffer) error {
			return c.Copy(block, from(rank))
		})
	case tree.Degree(me) == 0:
		return c.Recv(parent, c.Out())
	default:
		err = c.Recv(parent, bundle)
	}

	if err != nil {
		return err
	}

	// Send each child its part, and keep this rank's block.
	for i := range tree.Degree(me) {
		child := tree.Served(me, i)
		lo, hi := bundleOf(c, tree, child)
		if err := c.Send(child, bundle.Slice(lo, hi)); err != nil {
			return err
		}
	}
	return c.Copy(c.Out(), bundle.Slice(0, c.Out().Len()))
}
