// Package mpi provides the algorithm "mpi": the collectives of the MPI library that connects the
// ranks. Import it for its side effect, which registers it. It runs where the transport mpi
// (package transport/mpi) connects the group; elsewhere its calls return ccl.ErrNotImplemented.
//
// # Model
//
// A call begins as every call does: all ranks enter, and compare what they ask for. Then each rank
// makes the blocking call of the library, on its own thread: MPI_Allreduce for an all-reduce, and
// so on. It is for clusters whose library knows the network better than kernels over messages can:
// switches that reduce, adapters that reduce, the shape of the machine.
//
// Bits: a reduction is done in the order that the library chooses, which may depend on the number
// of ranks, the size, the version, and where the ranks are. Integers are exact. Min and max of
// floats treat NaN and the sign of zero as the library does. All ranks get the same bits of an
// all-reduce, as far as the library promises that.
//
// MPI has no arithmetic for float16 and bfloat16, and none of the program's own operations: their
// reductions are not implemented. Nor are min and max of unsigned integers, because MPICH 4.0.2
// compares them as signed ones, and sums of integers of 8 and 16 bits, because Open MPI 4.1.4 does
// not wrap them around where it uses vector instructions. A call has at most 2147483647 elements.
//
// # Failure
//
// Mistakes, ranks that are late and ranks that have died are found while ranks enter, as in every
// call. From there until the library returns nothing interrupts a rank: no context, no timeout, no
// Abort. A rank that dies in that time leaves the others in the library, until the launcher ends
// the job. docs/guides/clusters.md says what each launcher does.
package mpi
