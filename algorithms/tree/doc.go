// Package tree provides the algorithm "tree": messages go up a tree of ranks to
// its root, and down again. Import it for its side effect, which registers it.
//
// # Model
//
// The tree is a k-ary heap or a binomial tree (topology.NewKaryTree,
// topology.NewBinomialTree): a short vector reaches all ranks after a number of steps
// that grows with the logarithm of the number of ranks. A longer vector goes in chunks: a
// rank passes one chunk on while the next comes in
// (pipelined trees: P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for
// full bandwidth broadcast, reduction and scan, 2009; binomial trees: R. Thakur,
// R. Rabenseifner, W. Gropp: Optimization of collective communication operations
// in MPICH, 2005). A rank with several children serves them one after the other: arity 1,
// a chain, is fastest for long vectors, and binomial trees are for short ones.
//
// An all-reduce reduces the inputs up the tree to rank 0, and the result comes down; in a
// reduce-scatter each edge carries down the blocks of the ranks below it. A broadcast goes
// down the tree of its root, a reduce up. An all-gather takes each input up to rank 0, and
// then down each edge those that the ranks below it lack: every rank gets every input
// once. In a gather and a scatter the blocks of a subtree travel together, in one message
// for each edge.
//
// Two kernels use another tree for each rank, whatever the kind, to take few steps. In a
// scan a rank gets the partial results of the ranks 1, 2, 4, ... places before it (W. D.
// Hillis, G. L. Steele: Data parallel algorithms, 1986). An exclusive scan reduces them
// twice: with its own input to pass on, and without it for itself. In an all-to-all a
// block with j ranks to go moves by the bits of j, together with all blocks that move as
// far in that step (J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient
// algorithms for all-to-all communications in multiport message-passing systems, 1997). It
// takes log2(R) steps, and a block moves in half of them on average.
//
// An entry in ccl.yaml:
//
//	binomial: {module: tree, params: {kind: binomial, chunk: 64KiB}}
//
// Bits: in an all-reduce and a reduce-scatter a rank reduces its own input with the
// results of its children, in ascending order; all ranks get rank 0's result. A reduce
// does the same with root and rank 0 exchanged. With arity k the
// children of rank r are k*r+1 to k*r+k, so that 7 ranks and arity 2 give
//
//	(x0 + ((x1 + x3) + x4)) + ((x2 + x5) + x6)
//
// In a binomial tree they are r+1, r+2, r+4 and so on up to the lowest bit of r,
// which keeps the order of the ranks: 8 ranks give
//
//	((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7))
//
// In a scan a rank adds what the rank 1 place before it has, then what the rank 2 places
// before it has by then, and so on: ranks 5 and 6 get
//
//	(x0 + x1) + ((x2 + x3) + (x4 + x5))
//	(x0 + (x1 + x2)) + ((x3 + x4) + (x5 + x6))
//
// and in an exclusive one ranks 6 and 7
//
//	(x0 + (x1 + x2)) + ((x3 + x4) + x5)
//	((x0 + x1) + (x2 + x3)) + ((x4 + x5) + x6)
//
// The result is determined by the number of ranks, the kind and the arity, and in a reduce
// the root; in scans by the rank alone. It is the same on all ranks and in all runs. All
// elements are reduced in the same order: neither the count nor the chunk matters. For
// floating-point sums the result differs from direct's.
//
// # Failure
//
// Kernels return the errors of their verbs, with the direction and the chunk.
package tree
