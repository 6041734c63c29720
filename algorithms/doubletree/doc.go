// Package doubletree provides the algorithm "doubletree": two binary trees at the same
// time, one for each half of a vector. Import it for its side effect, which registers
// it.
//
// # Model
//
// In a binary tree a rank with two children sends a broadcast twice, and a leaf does not
// send at all. Two trees share the work: each carries half of the vector, and no rank has
// more than two children in both together, so that none sends more than one vector
// (topology.TwoTrees; P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full
// bandwidth broadcast, reduction and scan, 2009). A long vector takes as long as along a
// chain, and its first chunk no longer than down a tree.
//
// Both halves go in chunks, one after the other down each tree. In every step a rank
// sends at most one chunk and receives at most one: while a chunk comes from a parent, an
// earlier one goes to a child. All ranks make their steps in the same order, so that no
// cycle of ranks waits for each other. A reduction makes the same steps backwards. An
// all-reduce is a reduction to rank 0 followed by a broadcast from there.
//
// Bits: a rank reduces its own input with the results of its children in the tree of the
// element's half, the child with the earlier steps first. The result is determined by the
// number of ranks, the root, and the half that an element is in, and so by the count. It is
// the same on all ranks and in all runs. The chunk does not matter. For floating-point sums
// the result differs from direct's.
//
// # Failure
//
// Kernels return the errors of their verbs, with the direction and the step.
package doubletree
