// Package ring provides the algorithm "ring": every rank receives from its
// predecessor and sends to its successor. Import it for its side effect, which
// registers it.
//
// # Model
//
// An all-reduce is a reduce-scatter followed by an all-gather, each once around
// the ring (P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for
// clusters of workstations, 2009): every rank sends 2(R-1)/R of the vector,
// whatever R is. A broadcast is a pipeline of chunks down the chain that begins
// at the root; an all-gather passes every input on, R-1 times.
//
// Bits: element i of an all-reduce is folded around the ring, starting at a rank
// that depends on the element's block alone. The result is fixed by the number of
// ranks, the count and the chunk, and the same on all ranks and in all runs; for
// floating-point sums it differs from direct's.
//
// # Concurrency
//
// Kernels keep no state between calls.
//
// # Failure
//
// Kernels return the errors of their verbs, with the step.
package ring
