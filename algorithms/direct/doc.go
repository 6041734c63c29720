// Package direct provides the algorithm "direct": ranks read each other's inputs
// through a window. Import it for its side effect, which registers it.
//
// # Model
//
// Nothing is passed on. In an all-reduce every rank folds its block of all
// inputs, in rank order, and stores the result to all outputs: two passes over
// memory for each byte, which is as little as there can be. In a broadcast or an
// all-gather every rank copies what it lacks straight from where it is. This is
// the two-phase "direct push" of the shared-memory all-reduces that MPI libraries
// and inference engines use, on the users' own memory where ranks share it.
//
// Bits: the result of a reduction is that of the sequential fold
// ((x0 op x1) op x2) ... over the ranks, whatever the number of ranks, the size,
// the transport and the timing.
//
// # Concurrency
//
// Kernels keep no state between calls.
//
// # Failure
//
// Kernels return the errors of their verbs.
package direct
