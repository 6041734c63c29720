// Package mpi tests jobs that the launchers of installed MPIs start, through package dist as programs use it, on transport mpi:
// random programs of all calls, ranks that leave, fail and die. It contains no code.
//
// # Model
//
// The test binary also runs as a rank: an environment variable selects what it does instead of running tests. Tests skip an MPI that
// is not installed; make mpi requires it.
package mpi
