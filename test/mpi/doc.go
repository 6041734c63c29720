// Package mpi tests jobs that the launchers of installed MPIs start, through package dist as
// programs use it, on transport mpi: the conformance suites of kernels and of transports, random
// programs of all calls, ranks that leave, fail and die, on one node and between nodes; starts that
// cannot succeed; plain calls of MPI beside ranks in Python; and goccl bench. It contains no code.
//
// # Model
//
// The test binary also runs as a rank: an environment variable selects what it does instead of
// running tests. So do the test binaries of ccltest, whose ranks make the calls of its suite, and
// of transport/mpi, whose ranks carry packets for its suite in one process. Tests skip an MPI that
// is not installed, and fail instead where make mpi runs them.
//
// Nodes are stand-ins: sets of namespaces of this machine, joined by links. The test binary is also
// process 1 of each, and of the head, where launchers run. Only root can make them, with iproute2.
// Everything in them ends with the head, and that ends with the test, however that ends. Where a
// machine forbids namespaces also to root, these tests are skipped, also by make mpi, which prints
// why.
//
// Slurm's daemons run there too, so they end the same way.
package mpi
