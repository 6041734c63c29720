// Package fakempi builds a C library with the calls of MPI that transport mpi makes, for tests of
// what no installed library has: the standard ABI, Open MPI 5's, a thread level that is too low, a
// world that is not the launcher's.
//
// # Model
//
// The library is for a job of one rank, to which its messages come back. It checks every handle and
// number that it gets against its own list, which was written from the sources that it names. That
// a real library of these ABIs works is not proved by it.
package fakempi
