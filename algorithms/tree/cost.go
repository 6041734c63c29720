package tree

import (
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// allReduceCost: a chunk leaves each rank one step after its children have sent it. The
// root has the first chunk after as many steps as the tree is high, and the last one n-1
// steps later. Every edge is crossed twice.
func allReduceCost(s ccl.Shape) ccl.Cost {
	p := s.Params.(*Params)
	tree, n := p.treeOf(s.Ranks, 0), p.chunks(s.Bytes)
	return ccl.Cost{
		Steps: n - 1 + tree.Height() + downSteps(tree, 0, n),
		Bytes: 2 * (s.Ranks - 1) * s.Bytes,
	}
}

// reduceCost is the first half of an all-reduce, the same from any root.
func reduceCost(s ccl.Shape) ccl.Cost {
	p := s.Params.(*Params)
	return ccl.Cost{
		Steps: p.chunks(s.Bytes) - 1 + p.treeOf(s.Ranks, 0).Height(),
		Bytes: (s.Ranks - 1) * s.Bytes,
	}
}

func reduceScatterCost(s ccl.Shape) ccl.Cost {
	up, down := reduceCost(s), scatterCost(s)
	return ccl.Cost{Steps: up.Steps + down.Steps, Bytes: up.Bytes + down.Bytes}
}

// gatherCost: a block crosses one edge for each level of its rank's depth.
func gatherCost(s ccl.Shape) ccl.Cost {
	tree := s.Params.(*Params).treeOf(s.Ranks, 0)
	return ccl.Cost{Steps: tree.Height(), Bytes: depths(tree, s.Ranks) * s.Bytes}
}

func scatterCost(s ccl.Shape) ccl.Cost {
	tree := s.Params.(*Params).treeOf(s.Ranks, 0)
	return ccl.Cost{Steps: chunkSteps(tree, 0), Bytes: depths(tree, s.Ranks) * s.Total}
}

// depths returns the sum of the depths of all ranks.
func depths(tree topology.Tree, ranks int) int {
	sum := 0
	for rank := range ranks {
		sum += tree.Depth(rank)
	}
	return sum
}

func broadcastCost(s ccl.Shape) ccl.Cost {
	p := s.Params.(*Params)
	return ccl.Cost{
		Steps: downSteps(p.treeOf(s.Ranks, 0), 0, p.chunks(s.Bytes)), // the same from any root
		Bytes: (s.Ranks - 1) * s.Bytes,
	}
}

// downSteps returns the number of steps of n chunks from root to all ranks. No rank has
// more children than its parent, so none falls behind the root, which starts a chunk
// every Degree steps.
func downSteps(tree topology.Tree, root, n int) int {
	return (n-1)*tree.Degree(root) + chunkSteps(tree, root)
}

// chunkSteps returns the number of steps of one chunk from rank to all ranks below it.
func chunkSteps(tree topology.Tree, rank int) int {
	steps := 0
	for i := range tree.Degree(rank) {
		steps = max(steps, i+1+chunkSteps(tree, tree.Served(rank, i)))
	}
	return steps
}

// allGatherCost: each input crosses every edge once, up or down.
func allGatherCost(s ccl.Shape) ccl.Cost {
	p := s.Params.(*Params)
	return ccl.Cost{
		Steps: allGatherSteps(p.treeOf(s.Ranks, 0), s.Ranks, p.chunks(s.Bytes)),
		Bytes: (s.Ranks - 1) * s.Total,
	}
}

// allGatherSteps simulates an all-gather of n chunks from each rank with a clock for each
// rank. No formula is shorter.
func allGatherSteps(tree topology.Tree, ranks, n int) int {
	clocks := make([]int, ranks)
	send := func(from, to int) {
		clocks[from]++
		clocks[to] = max(clocks[to], clocks[from])
	}

	for source := range ranks {
		for range n {
			for rank := source; ; {
				parent, ok := tree.Parent(rank)
				if !ok {
					break
				}
				send(rank, parent)
				rank = parent
			}
		}
	}

	for source := ranks - 1; source >= 0; source-- {
		for range n {
			for rank := range ranks { // the root is 0: parents come before their children
				has, _ := tree.Branch(rank, source)
				for i := range tree.Degree(rank) {
					if child := tree.Served(rank, i); child != has {
						send(rank, child)
					}
				}
			}
		}
	}
	return slices.Max(clocks)
}
