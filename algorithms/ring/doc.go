// Package ring provides the algorithm "ring": every rank receives from its
// predecessor and sends to its successor. Import it for its side effect, which
// registers it.
//
// # Model
//
// An all-reduce is a reduce-scatter followed by an all-gather, each once around
// the ring (P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for
// clusters of workstations, 2009): every rank sends 2(R-1)/R of the vector,
// whatever R is. Both are there alone as well: what every rank folds on the way is the
// block of a rank behind it, and an all-gather passes every input on, R-1 times.
//
// A broadcast is a pipeline of chunks down the chain that begins at the root, a
// reduction one along the chain that ends there, and a scan one from rank 0 to the last
// rank.
//
// An all-to-all is a ring of shifts, in which every rank sends to the next, then to the
// one after it, and so on: blocks go straight to where they belong (pairwise exchange:
// R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication
// operations in MPICH, 2005). All pairs of ranks exchange messages then, for which a
// transport has to have room; tree takes fewer.
//
// There is no gather and no scatter: passed on along a chain, blocks would travel half
// of its length on average.
//
// Bits: a reduction folds along the ring. The first is, in an all-reduce, a rank that
// depends on the element's block alone; in a reduce-scatter the one after the rank that
// gets the element; in a reduce the one after the root; in scans rank 0. The result is
// fixed by the number of ranks and, in an all-reduce, the count and the chunk, in a
// reduce-scatter the block, in a reduce the root; and it is the same in all runs and, of
// an all-reduce, on all ranks. For floating-point sums it differs from direct's but in
// scans.
//
// # Concurrency
//
// Kernels keep no state between calls.
//
// # Failure
//
// Kernels return the errors of their verbs, with the step.
package ring
