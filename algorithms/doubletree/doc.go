// Package doubletree provides the algorithm "doubletree": two binary trees at the same
// time, one for each half of a vector. Import it for its side effect, which registers
// it.
//
// # Model
//
// In a binary tree a rank with two children sends a broadcast twice, and a leaf not at
// all. Two trees in which no rank has more than two children together, with half of
// the vector over each, let every rank send no more than the vector (topology.TwoTrees;
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast,
// reduction and scan, 2009). So a long vector takes as long as along a chain, and its
// first chunk no longer than down a tree.
//
// Both halves go in chunks, one after the other down each tree. In every step a rank
// sends one chunk at most and receives one: to a child in one tree what it has got
// before, while something comes from a parent. Ranks do their steps in the same order,
// and so none waits for one that waits for it. A reduction is the same backwards, and an
// all-reduce a reduction to rank 0 and a broadcast from there.
//
// Bits: a rank folds its own input with the results of its children in the tree of the
// element's half, that first whose chunks have the earlier steps. The result is fixed by
// the number of ranks, the root, and which half an element is in, and so by the count;
// it is the same on all ranks and in all runs. The chunk does not matter. For
// floating-point sums it differs from direct's.
//
// # Concurrency
//
// Kernels keep no state between calls.
//
// # Failure
//
// Kernels return the errors of their verbs, with the direction and the step.
package doubletree
