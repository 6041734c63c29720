// Package mpi connects processes of one or several nodes by the MPI library that is installed
// there: the one of the launcher (mpirun, mpiexec, srun) that has started them. A program links it
// by one import:
//
//	import _ "github.com/goccl/goccl/transport/mpi"
//
// The program then needs glibc, and no C compiler. It calls nothing of this package: the transport
// is chosen by name, or by "auto" if the launcher says that the ranks are on several nodes.
// GOCCL_MPI_LIBRARY names another library's file.
//
// Jobs in which some ranks are not goccl's, such as mpi4py's, use none of this, but plain calls of
// MPI: see [UncheckedComm].
//
// # Model
//
// The endpoints are those of package transport/internal/packet: copies of what other ranks have
// published, which packets bring up to date. Packets are messages of MPI; the wire receives from
// any rank and polls. The ranks of a node also join a segment of transport shm.
//
// The endpoints have MPI's own collectives (transport.Collectives), which the algorithm mpi calls:
// on a communicator of the group's ranks, made by the first such call. Such a call blocks its
// thread in the library. Meanwhile the goroutine that polls while ranks compute replies to the
// other ranks.
//
// # Concurrency
//
// Whoever waits polls MPI, one goroutine at a time. While the ranks of a process compute, a
// goroutine of the process polls every millisecond, or every five once nothing has come for a
// second, or every 20 as long as ranks of the process begin collectives of the library, so that
// other ranks get replies. It ends when all endpoints are closed.
//
// # Failure
//
// MPI reports no dead rank. Each process watches those of its own host through file descriptors of
// processes, and reports deaths to the others. If no rank of a host survives, no process can: calls
// with its ranks end by their timeout, which names them, or at once if MPI fails to send to one of
// them, which then counts as dead.
//
// MPI starts once in a process. It ends by [UncheckedComm.Close] if the transport does not connect
// the process, otherwise when dist.Spawn returns, or without Spawn in dist.DestroyProcessGroup. It
// waits there for the other processes, as MPI_Finalize does; for 0.3 s if the program has failed or
// another process has died.
package mpi
