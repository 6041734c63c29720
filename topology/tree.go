package topology

import (
	"fmt"
	"math/bits"
)

// Tree is a tree of ranks with any of them as the root, made by NewKaryTree or
// NewBinomialTree. It has no table: methods compute parents and children.
//
// Every rank has a position: rank v is at position v, except that the root and rank 0 are
// exchanged, so that the root is at position 0. A rank's parent is at a lower position than
// the rank itself. Trees that differ only in their roots have most edges in common, so that
// a transport needs few connections for all of them.
//
// All methods that take a rank have the precondition 0 <= rank < size, and panic if it is
// violated.
type Tree struct {
	size, root int
	arity      int // or binomial
}

const binomial = 0

// NewKaryTree returns the tree in which a rank has up to arity children and the
// levels are filled one after the other, as in a heap: the children of position v
// are at arity*v+1 to arity*v+arity. Arity 1 is a chain; with size-1 or more, all
// are children of the root. Arity 2, size 7, root 0:
//
//	     0
//	  1     2
//	3   4 5   6
//
// Preconditions: 0 <= root < size; arity >= 1; otherwise it panics.
func NewKaryTree(size, root, arity int) Tree {
	if arity < 1 {
		panic(fmt.Sprintf("topology: a tree of arity %d; it has to be at least 1", arity))
	}
	return newTree(size, root, arity)
}

// NewBinomialTree returns the tree in which the children of position v are at
// v+1, v+2, v+4 and so on, up to the lowest bit of v: a parent's position is that
// of its child without the lowest bit. Size 8, root 0:
//
//	0
//	├ 1
//	├ 2
//	│ └ 3
//	└ 4
//	  ├ 5
//	  └ 6
//	    └ 7
//
// A subtree is a contiguous range of positions. So a reduction of a rank's own value and then
// its children's results in ascending order keeps the order of the positions, and is
// balanced: ((0 1)(2 3))((4 5)(6 7)).
// Precondition: 0 <= root < size; otherwise it panics.
func NewBinomialTree(size, root int) Tree {
	return newTree(size, root, binomial)
}

func newTree(size, root, arity int) Tree {
	if root < 0 || root >= size {
		panic(fmt.Sprintf("topology: no rank %d in a tree of %s", root, ranks(size)))
	}
	return Tree{size: size, root: root, arity: arity}
}

// Parent returns the parent of rank; ok is false, and parent is None, if rank is
// the root.
func (t Tree) Parent(rank int) (parent int, ok bool) {
	v := t.position(rank)
	if v == 0 {
		return None, false
	}
	return t.rank(t.above(v)), true
}

// Degree returns the number of rank's children.
func (t Tree) Degree(rank int) int {
	v, last := t.position(rank), t.size-1
	switch {
	case t.arity == binomial:
		return min(bits.TrailingZeros(uint(v)), bits.Len(uint(last-v)))
	case v > (last-1)/t.arity: // not t.arity*v, which may overflow
		return 0
	}
	return min(t.arity, last-t.arity*v)
}

// Child returns child i of rank, in ascending order of positions.
// Precondition: 0 <= i < Degree(rank).
func (t Tree) Child(rank, i int) int {
	if i < 0 || i >= t.Degree(rank) {
		panic(fmt.Sprintf("topology: rank %d of a tree of %s has no child %d", rank, ranks(t.size), i))
	}
	v := t.position(rank)
	if t.arity == binomial {
		return t.rank(v + 1<<i)
	}
	return t.rank(t.arity*v + 1 + i)
}

// Served returns child i of rank in the order in which to serve them, one in each round: the
// child with the highest subtree first. A broadcast in which all ranks do so reaches all
// ranks in as few rounds as the tree allows.
// Precondition: 0 <= i < Degree(rank).
func (t Tree) Served(rank, i int) int {
	if t.arity == binomial {
		i = t.Degree(rank) - 1 - i
	}
	return t.Child(rank, i)
}

// Branch returns the child of rank whose subtree contains other; ok is false, and child is
// None, if other is rank itself or not below it.
// Precondition: 0 <= other < size.
func (t Tree) Branch(rank, other int) (child int, ok bool) {
	v, u := t.position(rank), t.position(other)
	if u <= v {
		return None, false
	}
	if t.arity == 1 {
		return t.rank(v + 1), true
	}

	for t.above(u) > v {
		u = t.above(u)
	}
	if t.above(u) < v {
		return None, false
	}
	return t.rank(u), true
}

// Depth returns the number of edges between the root and rank.
func (t Tree) Depth(rank int) int { return t.depth(t.position(rank)) }

// Height returns the number of edges between the root and the ranks that are
// farthest from it.
func (t Tree) Height() int {
	if t.arity == binomial {
		return bits.Len(uint(t.size)) - 1 // the most bits that a position has
	}
	return t.depth(t.size - 1)
}

// position checks rank and returns its position.
func (t Tree) position(rank int) int {
	if rank < 0 || rank >= t.size {
		panic(fmt.Sprintf("topology: no rank %d in a tree of %s", rank, ranks(t.size)))
	}
	return t.rank(rank) // an exchange is its own inverse
}

// rank returns the rank at position v.
func (t Tree) rank(v int) int {
	switch v {
	case 0:
		return t.root
	case t.root:
		return 0
	}
	return v
}

// above returns the parent's position of v > 0.
func (t Tree) above(v int) int {
	if t.arity == binomial {
		return v & (v - 1)
	}
	return (v - 1) / t.arity
}

func (t Tree) depth(v int) int {
	if t.arity == 1 {
		return v
	}
	d := 0
	for ; v > 0; v = t.above(v) {
		d++
	}
	return d
}
