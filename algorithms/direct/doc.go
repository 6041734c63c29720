// Package direct provides the algorithm "direct": ranks read each other's inputs
// through a view. Import it for its side effect, which registers it.
//
// # Model
//
// No data passes through a third rank. In an all-reduce every rank reduces its block of
// all inputs, in rank order, and stores the result to all outputs: two passes over memory
// for each byte, the least possible. In a broadcast or an all-gather every rank copies
// what it lacks straight from the rank that has it. This is the two-phase "direct push" of
// the shared-memory all-reduces of MPI libraries and inference engines, on the users' own
// memory where ranks share it.
//
// Bits: a reduction gives the result of the sequential ((x0 op x1) op x2) ... over the
// ranks, whatever the number of ranks, the size, the transport and the timing.
package direct
