// Package pairwise provides the algorithm "pairwise": that of package direct, in the order of a
// balanced tree. Import it for its side effect, which registers both.
//
// # Model
//
// Ranks are the leaves of a binary tree. Of n leaves the left subtree has the largest power of two
// below n, so four ranks give (x0 op x1) op (x2 op x3). Data moves as in package direct: every rank
// reduces its part of all inputs in one pass over memory.
//
// Bits: a sum of sums is the sum of all, if what each rank brings is the sum of a whole subtree. 8
// inputs therefore give the same bits on 1, 2, 4 and 8 ranks, which logical shards of package ddp
// rest on. Rounding errors grow with the logarithm of the number of ranks (Higham, 1993).
package pairwise
