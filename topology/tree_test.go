package topology_test

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/topology"
)

// treeCase is a tree and what it was made of; arity 0 is binomial.
type treeCase struct {
	size, root, arity int
	topology.Tree
}

func (c treeCase) String() string {
	return fmt.Sprintf("size %d root %d arity %d", c.size, c.root, c.arity)
}

func makeTree(size, root, arity int) treeCase {
	if arity == 0 {
		return treeCase{size, root, arity, topology.NewBinomialTree(size, root)}
	}
	return treeCase{size, root, arity, topology.NewKaryTree(size, root, arity)}
}

// eachTree calls check with binomial trees and with trees of arity 1 to 5, of up to
// most ranks, with all roots.
func eachTree(most int, check func(c treeCase)) {
	for size := 1; size <= most; size++ {
		for root := range size {
			for arity := range 6 {
				check(makeTree(size, root, arity))
			}
		}
	}
}

func (c treeCase) children(rank int) []int {
	var all []int
	for i := range c.Degree(rank) {
		all = append(all, c.Child(rank, i))
	}
	return all
}

// at returns the rank at position v, and the position of rank v: the root and rank
// 0 have changed places.
func (c treeCase) at(v int) int {
	switch v {
	case 0:
		return c.root
	case c.root:
		return 0
	}
	return v
}

// subtree returns the ranks of rank's subtree in the order of a reduction: a rank, and
// then what its children return.
func (c treeCase) subtree(rank int) []int {
	all := []int{rank}
	for _, child := range c.children(rank) {
		all = append(all, c.subtree(child)...)
	}
	return all
}

// expect fails t unless the two are equal. It costs less than require.Equal, which
// these tests would call millions of times.
func (c treeCase) expect(t *testing.T, want, got int, format string, args ...any) {
	if want != got {
		t.Helper()
		t.Fatalf("%v: %s is %d, want %d", c, fmt.Sprintf(format, args...), got, want)
	}
}

// Every rank is reached exactly once from the root, parents and children agree,
// and a child is one step deeper than its parent.
func TestTreeReachesEveryRankOnce(t *testing.T) {
	eachTree(70, func(c treeCase) {
		parent, ok := c.Parent(c.root)
		require.False(t, ok, "%v", c)
		c.expect(t, topology.None, parent, "the root's parent")
		c.expect(t, 0, c.Depth(c.root), "the root's depth")

		reached := make([]bool, c.size)
		deepest := 0
		for _, rank := range c.subtree(c.root) {
			require.False(t, reached[rank], "%v: rank %d is reached twice", c, rank)
			reached[rank] = true
			deepest = max(deepest, c.Depth(rank))
			for _, child := range c.children(rank) {
				parent, ok := c.Parent(child)
				if !ok {
					t.Fatalf("%v: rank %d, a child of %d, has no parent", c, child, rank)
				}
				c.expect(t, rank, parent, "the parent of %d", child)
				c.expect(t, c.Depth(rank)+1, c.Depth(child), "the depth of %d", child)
			}
		}
		require.NotContains(t, reached, false, "%v", c)
		c.expect(t, deepest, c.Height(), "the height")
	})
}

// The children are those that the documentation names.
func TestTreeChildren(t *testing.T) {
	eachTree(40, func(c treeCase) {
		for v := range c.size {
			var want []int
			for i := 1; i <= c.arity; i++ {
				want = append(want, c.arity*v+i)
			}
			for bit := 1; c.arity == 0 && bit < c.size && v&bit == 0; bit *= 2 {
				want = append(want, v+bit)
			}
			want = slices.DeleteFunc(want, func(u int) bool { return u >= c.size })
			for i, u := range want {
				want[i] = c.at(u)
			}
			if got := c.children(c.at(v)); !slices.Equal(want, got) {
				t.Fatalf("%v: the children at position %d are %v, want %v", c, v, got, want)
			}
		}
	})
}

// A full k-ary tree of height h has (k^(h+1)-1)/(k-1) ranks, one more begins the
// next level; a binomial tree of height h has 2^h to 2^(h+1)-1.
func TestTreeHeight(t *testing.T) {
	for size := 1; size <= 5000; size++ {
		require.Equal(t, int(math.Log2(float64(size))), topology.NewBinomialTree(size, size/2).Height(), "size %d", size)
		require.Equal(t, size-1, topology.NewKaryTree(size, size/2, 1).Height(), "size %d", size)
		for k := 2; k <= 5; k++ {
			h, level, full := 0, 1, 1 // full: ranks in levels 0 to h
			for full < size {
				h++
				level *= k
				full += level
			}
			require.Equal(t, h, topology.NewKaryTree(size, size/2, k).Height(), "size %d arity %d", size, k)
		}
	}
}

// A subtree of a binomial tree is a contiguous range of positions, in order: a
// reduction of own values and children in order keeps it.
func TestBinomialSubtreesAreContiguous(t *testing.T) {
	for size := 1; size <= 70; size++ {
		for root := range size {
			c := makeTree(size, root, 0)
			for rank := range size {
				for i, member := range c.subtree(rank) {
					c.expect(t, c.at(c.at(rank)+i), member, "member %d of the subtree of %d", i, rank)
				}
			}
		}
	}
}

// Branch agrees with walking down.
func TestTreeBranch(t *testing.T) {
	eachTree(24, func(c treeCase) {
		for rank := range c.size {
			branch := slices.Repeat([]int{topology.None}, c.size)
			for _, child := range c.children(rank) {
				for _, member := range c.subtree(child) {
					branch[member] = child
				}
			}
			for other, want := range branch {
				got, ok := c.Branch(rank, other)
				c.expect(t, want, got, "the branch of %d with %d", rank, other)
				require.Equal(t, want != topology.None, ok, "%v", c)
			}
		}
	})
}

// Served is the children once each, and no other order lets a broadcast end in
// fewer rounds: an optimal one serves the children in the descending order of the
// rounds that their subtrees take.
func TestTreeServed(t *testing.T) {
	eachTree(40, func(c treeCase) {
		var rounds, fewest func(rank int) int
		rounds = func(rank int) int {
			most := 0
			for i := range c.Degree(rank) {
				most = max(most, i+1+rounds(c.Served(rank, i)))
			}
			return most
		}
		fewest = func(rank int) int {
			var below []int
			for _, child := range c.children(rank) {
				below = append(below, fewest(child))
			}
			slices.Sort(below)
			most := 0
			for i, n := range below {
				most = max(most, len(below)-i+n)
			}
			return most
		}
		c.expect(t, fewest(c.root), rounds(c.root), "the number of rounds")
		if c.arity == 0 {
			c.expect(t, bits.Len(uint(c.size-1)), rounds(c.root), "the number of rounds")
		}
		for rank := range c.size {
			var served []int
			for i := range c.Degree(rank) {
				served = append(served, c.Served(rank, i))
			}
			require.ElementsMatch(t, c.children(rank), served, "%v", c)
		}
	})
}

// An arity beyond the size, however large, makes a star.
func TestTreeOfLargeArity(t *testing.T) {
	for _, arity := range []int{6, 7, math.MaxInt} {
		star := topology.NewKaryTree(7, 2, arity)
		require.Equal(t, 6, star.Degree(2))
		require.Equal(t, 1, star.Height())
		for rank := range 7 {
			if rank != 2 {
				require.Zero(t, star.Degree(rank))
				parent, _ := star.Parent(rank)
				require.Equal(t, 2, parent)
			}
		}
	}
}

func TestTreePanicsOnABrokenPrecondition(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {-1, -2}, {4, 4}, {4, -1}} {
		require.Panics(t, func() { topology.NewBinomialTree(c[0], c[1]) }, "size %d root %d", c[0], c[1])
		require.Panics(t, func() { topology.NewKaryTree(c[0], c[1], 2) }, "size %d root %d", c[0], c[1])
	}
	require.Panics(t, func() { topology.NewKaryTree(4, 0, 0) })
	require.Panics(t, func() { topology.NewKaryTree(4, 0, -1) })
	tree := topology.NewBinomialTree(4, 3)
	for _, rank := range []int{-1, 4, math.MinInt, math.MaxInt} {
		text := fmt.Sprintf("topology: no rank %d in a tree of 4 ranks", rank)
		require.PanicsWithValue(t, text, func() { tree.Parent(rank) })
		require.PanicsWithValue(t, text, func() { tree.Degree(rank) })
		require.PanicsWithValue(t, text, func() { tree.Depth(rank) })
		require.PanicsWithValue(t, text, func() { tree.Child(rank, 0) })
		require.PanicsWithValue(t, text, func() { tree.Branch(0, rank) })
	}
	require.PanicsWithValue(t, "topology: rank 3 of a tree of 4 ranks has no child 2", func() { tree.Child(3, 2) })
	require.Panics(t, func() { tree.Child(3, -1) })
	require.Panics(t, func() { tree.Served(3, 2) })
	require.Panics(t, func() { tree.Served(3, -1) })
}

func TestTreesDoNotAllocate(t *testing.T) {
	sum := 0
	allocs := testing.AllocsPerRun(100, func() {
		for _, tree := range []topology.Tree{topology.NewBinomialTree(64, 5), topology.NewKaryTree(64, 5, 2)} {
			for rank := range 64 {
				parent, _ := tree.Parent(rank)
				branch, _ := tree.Branch(rank, 63)
				sum += parent + branch + tree.Depth(rank) + tree.Height()
				for i := range tree.Degree(rank) {
					sum += tree.Child(rank, i) + tree.Served(rank, i)
				}
			}
		}
	})
	require.Zero(t, allocs)
	require.NotZero(t, sum)
}

func FuzzTree(f *testing.F) {
	f.Add(7, 3, 2, 5)
	f.Add(topology.MaxCount, topology.MaxCount-1, 0, 12345)
	f.Add(topology.MaxCount, 1, 3, topology.MaxCount-1)
	f.Add(topology.MaxCount-1, 0, math.MaxInt, 0)
	f.Add(math.MaxInt, math.MaxInt-1, 2, 1)
	f.Add(math.MaxInt, 1, 0, 0)
	f.Fuzz(func(t *testing.T, size, root, arity, rank int) {
		if size < 1 || arity < 0 {
			return // TestTreePanicsOnABrokenPrecondition
		}
		root, rank = int(uint(root)%uint(size)), int(uint(rank)%uint(size))
		c := makeTree(size, root, arity)
		if parent, ok := c.Parent(rank); ok {
			c.expect(t, c.Depth(parent)+1, c.Depth(rank), "the depth of %d", rank)
			branch, _ := c.Branch(parent, rank)
			c.expect(t, rank, branch, "the branch of %d with %d", parent, rank)
		} else {
			c.expect(t, root, rank, "the rank without a parent")
		}
		degree := c.Degree(rank)
		for _, i := range []int{0, 1, degree / 2, degree - 1} {
			if i < 0 || i >= degree {
				continue
			}
			child := c.Child(rank, i)
			parent, _ := c.Parent(child)
			c.expect(t, rank, parent, "the parent of %d", child)
			if i > 0 {
				require.Less(t, c.at(c.Child(rank, i-1)), c.at(child), "%v: children in order", c)
			}
		}
		require.LessOrEqual(t, c.Depth(rank), c.Height(), "%v", c)
		require.Panics(t, func() { c.Child(rank, degree) }, "%v", c)
	})
}
