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
// and passes it down; a reduce-scatter passes down each edge the blocks of the ranks
// below it. A broadcast goes down the tree of its root, a reduce up. An all-gather
// takes each input up to rank 0, and then down each edge those that the ranks below
// it lack: every rank gets every input once. In a gather and a scatter the blocks of a
// subtree travel together, in one message for each edge.
//
// Two kernels are made for few steps with a tree for each rank, which together are
// neither of the kinds. In a scan a rank gets what comes before it from the ranks 1, 2,
// 4, ... places back (W. D. Hillis, G. L. Steele: Data parallel algorithms, 1986), and in
// an exclusive one it folds that twice, with its own input to pass on and without for
// itself. In an all-to-all a block with
// j ranks to go moves by the bits of j, with all others that are to move as far at the
// time (J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient algorithms for
// all-to-all communications in multiport message-passing systems, 1997): that takes
// log2(R) steps, in half of which a block moves on average.
//
// An entry in ccl.yaml:
//
//	binomial: {module: tree, params: {kind: binomial, chunk: 64KiB}}
//
// There is no kernel for a barrier: it is the engine's own, whatever the
// algorithm.
//
// Bits: in an all-reduce and a reduce-scatter a rank folds its own input with the
// results of its children, in ascending order; rank 0's result is everybody's. A reduce
// does the same with the root and rank 0 in each other's place. With arity k the
// children of rank r are k*r+1 to k*r+k, so that 7 ranks and arity 2 give
//
//	(x0 + ((x1 + x3) + x4)) + ((x2 + x5) + x6)
//
// In a binomial tree they are r+1, r+2, r+4 and so on up to the lowest bit of r,
// which keeps the order of the ranks: 8 ranks give
//
//	((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7))
//
// In a scan a rank adds what the rank 1 place back has, then what the one 2 places back
// has then, and so on: ranks 5 and 6 get
//
//	(x0 + x1) + ((x2 + x3) + (x4 + x5))
//	(x0 + (x1 + x2)) + ((x3 + x4) + (x5 + x6))
//
// and in an exclusive one ranks 6 and 7
//
//	(x0 + (x1 + x2)) + ((x3 + x4) + x5)
//	((x0 + x1) + (x2 + x3)) + ((x4 + x5) + x6)
//
// The result is fixed by the number of ranks, the kind and the arity, and in a reduce
// the root; in scans by the rank alone. It is the same on all ranks and in all runs. All
// elements are folded alike: neither the count nor the chunk matters. For floating-point
// sums it differs from direct's.
//
// # Concurrency
//
// Kernels keep no state between calls.
//
// # Failure
//
// Kernels return the errors of their verbs, with the direction and the chunk.
package tree
