package topology_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/topology"
)

func eachTwoTrees(most int, check func(t topology.TwoTrees, size, root int)) {
	for size := 1; size <= most; size++ {
		for root := range size {
			check(topology.NewTwoTrees(size, root), size, root)
		}
	}
}

// Both trees reach every rank once, parents and children agree, and no tree is higher
// than the logarithm allows.
func TestTwoTreesReachEveryRankOnce(t *testing.T) {
	eachTwoTrees(40, func(two topology.TwoTrees, size, root int) {
		for tree := range 2 {
			reached := make([]bool, size)
			var visit func(rank, depth int)
			visit = func(rank, depth int) {
				require.False(t, reached[rank], "size %d root %d: rank %d is reached twice", size, root, rank)
				reached[rank] = true
				require.LessOrEqual(t, depth, int(math.Log2(float64(size)))+2)
				for i := range two.Degree(tree, rank) {
					child := two.Child(tree, rank, i)
					parent, ok := two.Parent(tree, child)
					require.True(t, ok)
					require.Equal(t, rank, parent, "size %d root %d: the parent of %d", size, root, child)
					visit(child, depth+1)
				}
			}
			visit(root, 0)
			require.NotContains(t, reached, false, "size %d root %d", size, root)
			parent, ok := two.Parent(tree, root)
			require.False(t, ok)
			require.Equal(t, topology.None, parent)
			require.Equal(t, min(size-1, 1), two.Degree(tree, root))
		}
	})
}

// No rank has more than two children in both trees, and none but the root and the one
// below it has children in both.
func TestTwoTreesShareTheWork(t *testing.T) {
	eachTwoTrees(70, func(two topology.TwoTrees, size, root int) {
		both := 0
		for rank := range size {
			degree0, degree1 := two.Degree(0, rank), two.Degree(1, rank)
			require.LessOrEqual(t, degree0+degree1, 2, "size %d root %d rank %d", size, root, rank)
			if rank != root && degree0 > 0 && degree1 > 0 {
				both++
				parent, _ := two.Parent(0, rank)
				require.Equal(t, root, parent)
			}
		}
		want := 0
		if size > 2 && size%2 == 0 {
			want = 1
		}
		require.Equal(t, want, both, "size %d root %d", size, root)
	})
}

// In no step does a rank send or receive two chunks, and a chunk goes on one or two
// steps after it has come.
func TestTwoTreesSteps(t *testing.T) {
	eachTwoTrees(70, func(two topology.TwoTrees, size, root int) {
		for rank := range size {
			var sends [2]int
			for tree := range 2 {
				came := -1
				if rank != root {
					came = two.Step(tree, rank)
					require.Less(t, came, two.Span())
				}
				for i := range two.Degree(tree, rank) {
					goes := two.Step(tree, two.Child(tree, rank, i))
					sends[goes%2]++
					require.Contains(t, []int{came + 1, came + 2}, goes, "size %d root %d: from %d", size, root, rank)
				}
			}
			require.LessOrEqual(t, max(sends[0], sends[1]), 1, "size %d root %d: rank %d sends twice", size, root, rank)
			if rank != root {
				require.NotEqual(t, two.Step(0, rank)%2, two.Step(1, rank)%2, "size %d root %d: rank %d receives twice", size, root, rank)
			}
		}
		require.Zero(t, two.Span()%2)
	})
}

// The trees are the same as in the documentation.
func TestTwoTreesOfTheDocumentation(t *testing.T) {
	for size, want := range map[int][2][]int{
		7: {{2, 4, 2, 0, 6, 4}, {3, 1, 0, 5, 3, 5}},
		8: {{0, 3, 5, 3, 1, 7, 5}, {0, 4, 2, 1, 6, 4, 6}},
	} {
		two := topology.NewTwoTrees(size, 0)
		var parents [2][]int
		for tree := range parents {
			for rank := 1; rank < size; rank++ {
				parent, _ := two.Parent(tree, rank)
				parents[tree] = append(parents[tree], parent)
			}
		}
		require.Equal(t, want, parents)
	}
}

func TestTwoTreesPanicOnABrokenPrecondition(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {-1, -2}, {4, 4}, {4, -1}} {
		require.Panics(t, func() { topology.NewTwoTrees(c[0], c[1]) }, "size %d root %d", c[0], c[1])
	}
	two := topology.NewTwoTrees(4, 3)
	for _, rank := range []int{-1, 4, math.MinInt, math.MaxInt} {
		text := fmt.Sprintf("topology: no rank %d in two trees of 4 ranks", rank)
		require.PanicsWithValue(t, text, func() { two.Parent(0, rank) })
		require.PanicsWithValue(t, text, func() { two.Degree(1, rank) })
		require.PanicsWithValue(t, text, func() { two.Child(1, rank, 0) })
		require.PanicsWithValue(t, text, func() { two.Step(0, rank) })
	}
	require.PanicsWithValue(t, "topology: no tree 2 of two", func() { two.Parent(2, 0) })
	require.PanicsWithValue(t, "topology: no tree -1 of two", func() { two.Step(-1, 0) })
	require.PanicsWithValue(t, "topology: nothing comes to rank 3, the root of two trees", func() { two.Step(0, 3) })
	require.PanicsWithValue(t, "topology: rank 3 in tree 0 of 4 ranks has no child 1", func() { two.Child(0, 3, 1) })
	require.Panics(t, func() { two.Child(0, 3, -1) })
}

func TestTwoTreesDoNotAllocate(t *testing.T) {
	sum := 0
	require.Zero(t, testing.AllocsPerRun(10, func() {
		two := topology.NewTwoTrees(64, 5)
		for rank := range 64 {
			parent, _ := two.Parent(1, rank)
			sum += parent
			if rank != 5 {
				sum += two.Step(0, rank)
			}
		}
	}))
	require.NotZero(t, sum)
}
