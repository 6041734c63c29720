// Package ring provides the algorithm "ring": every rank receives from its
// predecessor and sends to its successor. Import it for its side effect, which
// registers it.
//
// # Model
//
// An all-reduce is a reduce-scatter followed by an all-gather, each once around
// the ring (P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for
// clusters of workstations, 2009): every rank sends 2(R-1)/R of the vector,
// whatever R is. Both exist as kernels of their own as well. In a reduce-scatter every
// block passes all ranks and ends at its own; in an all-gather every input is passed on
// R-1 times.
//
// A broadcast is a pipeline of chunks along the chain that begins at the root, a
// reduction one along the chain that ends there, and a scan one from rank 0 to the last
// rank.
//
// In an all-to-all every rank sends to the rank 1 place on, then 2 places, and so on, so
// that blocks go straight to their rank (pairwise exchange: R. Thakur, R. Rabenseifner,
// W. Gropp: Optimization of collective communication operations in MPICH, 2005). All pairs
// of ranks exchange messages, for which the transport needs room; tree uses fewer pairs.
//
// ring has no gather and no scatter: passed on along a chain, blocks would travel half of
// its length on average.
//
// Bits: a reduction goes along the ring. It begins, in an all-reduce, at a rank that
// depends on the element's block alone; in a reduce-scatter at the rank after the one that
// gets the element; in a reduce at the rank after the root; in scans at rank 0. The result
// is determined by the number of ranks and, in an all-reduce, the count and the chunk, in a
// reduce-scatter the block, in a reduce the root. It is the same in all runs and, in an
// all-reduce, on all ranks. For floating-point sums it differs from direct's, except in
// scans.
//
// # Failure
//
// Kernels return the errors of their verbs, with the step.
package ring
