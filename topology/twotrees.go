package topology

import (
	"fmt"
	"math/bits"
)

// TwoTrees is a pair of binary trees of the same ranks with the same root, made by NewTwoTrees: no
// rank has more than two children in both together.
//
// If each tree carries half of a vector, no rank sends more than it receives; in a single binary
// tree half of the ranks would send the vector twice and the others not at all. The trees are
// numbered 0 and 1.
//
// A pipeline of chunks runs down both trees in steps. The first chunk of a tree arrives at a
// rank in step Step, the next one two steps later, and so on. In a step no rank sends more
// than one chunk, nor receives more than one. A pipeline up the trees has the same steps
// backwards.
//
// Positions are the same as in a Tree: the root and rank 0 are exchanged. The root is above the
// rest, which are numbered from left to right in tree 0 and from right to left in tree 1; so
// even ones have children in tree 0, and odd ones in tree 1. This needs an even number of
// them: of an odd number the first is between the root and the rest, in both trees. Ranks 0
// to 6, and 0 to 7, root 0:
//
//	tree 0    tree 1          tree 0    tree 1
//	0         0               0         0
//	    4         3           1         1
//	 2    6    5    1             5         4
//	1 3  5    6 4  2           3    7    6    2
//	                          2 4  6    7 5  3
//
// All methods that take a tree or a rank have the preconditions 0 <= tree < 2 and
// 0 <= rank < size, and panic if they are violated.
//
// Source: Sanders, Speck and Träff, Two-tree algorithms for full bandwidth broadcast,
// reduction and scan, Parallel Computing 35 (2009).
type TwoTrees struct {
	size, root int
	head       int // 1 if a rank is between the root and the rest
	last       int // number of the rest, even
}

// NewTwoTrees returns the two trees of size ranks.
// Precondition: 0 <= root < size; otherwise it panics.
func NewTwoTrees(size, root int) TwoTrees {
	if root < 0 || root >= size {
		panic(fmt.Sprintf("topology: no rank %d in two trees of %s", root, ranks(size)))
	}
	last := (size - 1) &^ 1
	return TwoTrees{size: size, root: root, head: size - 1 - last, last: last}
}

// Parent returns the parent of rank in a tree; ok is false, and parent is None, if
// rank is the root.
func (t TwoTrees) Parent(tree, rank int) (parent int, ok bool) {
	u := t.position(tree, rank)
	if u == t.top() {
		return None, false
	}
	return t.rank(tree, t.above(u)), true
}

// Degree returns the number of rank's children in a tree, 0 to 2.
func (t TwoTrees) Degree(tree, rank int) int {
	_, n := t.below(t.position(tree, rank))
	return n
}

// Child returns child i of rank in a tree.
// Precondition: 0 <= i < Degree(tree, rank).
func (t TwoTrees) Child(tree, rank, i int) int {
	children, n := t.below(t.position(tree, rank))
	if i < 0 || i >= n {
		panic(fmt.Sprintf("topology: rank %d in tree %d of %s has no child %d", rank, tree, ranks(t.size), i))
	}
	return t.rank(tree, children[i])
}

// Step returns the step in which the first chunk of a tree arrives at rank, one or two after
// the step in which it arrives at the parent. It is below Span.
// Precondition: rank is not the root.
func (t TwoTrees) Step(tree, rank int) int {
	u := t.position(tree, rank)
	if u == t.top() {
		panic(fmt.Sprintf("topology: nothing comes to rank %d, the root of two trees", rank))
	}
	return t.step(tree, u)
}

// Span returns a number of steps, even, after which the first chunk of each tree has arrived
// at all ranks.
func (t TwoTrees) Span() int {
	return 2 * (t.head + bits.Len(uint(t.last))) // no more than two for each level
}

func (t TwoTrees) step(tree, u int) int {
	next := 0
	if up := t.above(u); up != t.top() {
		next = t.step(tree, up) + 1
	}
	if next%2 != t.parity(tree, u) {
		next++
	}
	return next
}

// parity returns 0 if the edge from above to position u is for even steps, 1 if for odd ones.
// A rank receives at different parities in the two trees, and its two edges to children
// differ as well. The parity of a leaf's edge follows from the other tree, in which the rank
// is not a leaf; the parity of other edges follows, from the top down, from being a left or a
// right one. The last term makes neighbouring leaves compatible, which the source proves.
func (t TwoTrees) parity(tree, u int) int {
	up := t.above(u)
	switch {
	case u == 0:
		return tree
	case u%2 != 0:
		return 1 - t.parity(1-tree, t.last+1-u)
	case up == 0:
		return tree ^ t.head
	}

	parity := t.parity(tree, up)
	if u > up {
		parity = 1 - parity
	}
	return parity ^ (t.last/2+1)%2
}

// position checks tree and rank, and returns the position of rank in the tree. The rest are
// at 1 to last, from left to right. Above them is 0, the root or the rank between, and in the
// second case -1, the root.
func (t TwoTrees) position(tree, rank int) int {
	if rank < 0 || rank >= t.size {
		panic(fmt.Sprintf("topology: no rank %d in two trees of %s", rank, ranks(t.size)))
	}
	if tree < 0 || tree > 1 {
		panic(fmt.Sprintf("topology: no tree %d of two", tree))
	}

	u := rank
	switch rank {
	case t.root:
		u = 0
	case 0:
		u = t.root
	}
	u -= t.head
	if tree == 1 && u > 0 {
		u = t.last + 1 - u
	}
	return u
}

// top is the root's position.
func (t TwoTrees) top() int { return -t.head }

// rank returns the rank at position u of a tree.
func (t TwoTrees) rank(tree, u int) int {
	if tree == 1 && u > 0 {
		u = t.last + 1 - u
	}
	switch v := u + t.head; v {
	case 0:
		return t.root
	case t.root:
		return 0
	default:
		return v
	}
}

// above returns the position above u. In a full tree it is u with its lowest bit moved up by
// one. If that is beyond the last position, because the right half of a tree is not full, u is
// the top of the rest and hangs below u without its lowest bit.
func (t TwoTrees) above(u int) int {
	if u <= 0 {
		return u - 1
	}
	bit := u & -u
	if up := u&^bit | bit<<1; up <= t.last {
		return up
	}
	return u &^ bit
}

// below returns the n positions below u, the left one first.
func (t TwoTrees) below(u int) (children [2]int, n int) {
	if u < 0 {
		return [2]int{0}, 1
	}
	half := (u & -u) >> 1
	switch {
	case u == 0:
		half = 1 << bits.Len(uint(t.last)) >> 1
	case half > 0:
		children[n] = u - half
		n++
	}

	for half > t.last-u {
		half >>= 1
	}
	if half > 0 {
		children[n] = u + half
		n++
	}
	return children, n
}
