// Package doubletree provides the algorithm "doubletree": two binary trees at the same
// time, one for each half of a vector. Import it for its side effect, which registers
// it.
//
// # Model
//
// In a binary tree a rank with two children sends a broadcast twice, and a leaf does not
// send at all. Two trees share the work. Each carries half of the vector, and no rank has
// more than two children in both together, so no rank sends more than one vector. A
// broadcast of a long vector then takes the time of a chain, and its first chunk arrives
// as early as down a tree.
//
// The pair of trees is topology.TwoTrees. Source: P. Sanders, J. Speck, J. L. Träff,
// Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009.
//
// Both halves go in chunks, one after the other down each tree. In every step a rank
// sends at most one chunk and receives at most one: while a chunk comes from a parent, an
// earlier one goes to a child. All ranks make their steps in the same order, so that no
// cycle of ranks waits for each other. A reduction makes the same steps backwards. An
// all-reduce is a reduction to rank 0 followed by a broadcast from there.
//
// Bits: a rank reduces its own input with the results of its children, the child with the
// earlier steps first. Which ranks these are depends on the tree, and so on the half that an
// element is in. The bits therefore depend on the number of ranks, the root and the count,
// but not on the length of a chunk. They are the same on all ranks and in all runs. For
// floating-point sums they differ from those of direct.
//
// # Failure
//
// A kernel returns the error of the ccl.Call method that failed, with the direction and the
// step.
package doubletree
