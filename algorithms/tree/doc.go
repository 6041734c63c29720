// Package tree provides the algorithm "tree": messages go up a tree of ranks to
// its root, and down again. Import it for its side effect, which registers it.
//
// # Model
//
// The tree is a k-ary heap or a binomial tree (topology.NewKaryTree,
// topology.NewBinomialTree), so that a short vector has reached everybody after a
// number of steps that grows with the logarithm of the number of ranks. A longer
// one goes in chunks: a rank passes a chunk on while the next one comes in
// (pipelined trees: P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for
// full bandwidth broadcast, reduction and scan, 2009; binomial trees: R. Thakur,
// R. Rabenseifner, W. Gropp: Optimization of collective communication operations
// in MPICH, 2005). A rank that has several children serves them one after the
// other: arity 1, a chain, takes long vectors fastest, and binomial trees are for
// short ones.
//
// An all-reduce folds the inputs up the tree to rank 0, which finishes the result
// and passes it down. A broadcast goes down the tree of its root. An all-gather
// takes each input up to rank 0, and then down each edge those that the ranks below
// it lack: every rank gets every input once.
//
// An entry in ccl.yaml:
//
//	binomial: {module: tree, params: {kind: binomial, chunk: 64KiB}}
//
// There is no kernel for a barrier: it is the engine's own, whatever the
// algorithm.
//
// Bits: in an all-reduce a rank folds its own input with the results of its
// children, in ascending order; rank 0's result is everybody's. With arity k the
// children of rank r are k*r+1 to k*r+k, so that 7 ranks and arity 2 give
//
//	(x0 + ((x1 + x3) + x4)) + ((x2 + x5) + x6)
//
// In a binomial tree they are r+1, r+2, r+4 and so on up to the lowest bit of r,
// which keeps the order of the ranks: 8 ranks give
//
//	((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7))
//
// The result is fixed by the number of ranks, the kind and the arity, and the same
// on all ranks and in all runs. All elements are folded alike: neither the count
// nor the chunk matters. For floating-point sums it differs from direct's.
//
// # Concurrency
//
// Kernels keep no state between calls.
//
// # Failure
//
// Kernels return the errors of their verbs, with the direction and the chunk.
package tree
