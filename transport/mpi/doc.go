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
// Each process has copies of what the ranks of its groups publish (see package groupsync). Packets
// bring the copies up to date: a rank that enters a call sends its line, and so on; a kernel's
// messages are packets too. A wire carries packets between processes, in order between each pair.
// The wire of MPI receives from any rank and polls.
//
// In a group of few ranks each sends its line to all others. In a larger one ranks pass lines on,
// in rounds: a rank has sent a call's lines after log2 R packets (see directRanks). Packets of one
// rank are therefore in order, but its line may come before or after them.
//
// The ranks of a node also join a segment of transport shm, which connects groups on that node, and
// the level of the node in groups on several.
//
// In a group that MPI connects no rank sees the memory of another one. A view therefore shows
// copies, which ranks send each other: to each rank the part that it reads, if the kernel reads no
// more (ccl.Kernel.ReadsOwnPart), otherwise all.
//
// The lowest rank of a group that is still there, and replies to queries, is its coordinator. It
// decides which failure is the group's, and whether the group was formed.
//
// The endpoints have MPI's own collectives (transport.Collectives), which the algorithm mpi calls:
// on a communicator of the group's ranks, made by the first such call. Such a call blocks its
// thread in the library. Meanwhile the goroutine that polls while ranks compute replies to the
// other ranks.
//
// # Concurrency
//
// Whoever waits polls the wire, one goroutine at a time. While the ranks of a process compute, a
// goroutine of the process polls every millisecond, or every five once nothing has come for a
// second, or every 20 as long as ranks of the process begin collectives of the library, so that
// other ranks get replies. It ends when all endpoints are closed.
//
// # Failure
//
// A rank that gives up a wait first queries all others for what they have published, for an eighth
// of its timeout and two seconds at most, so that its error rests on what had happened and not on
// what had arrived. Replies carry the rank's own lines, which a rank that is late or gone may hold
// up. A rank that leaves sends its lines to all first, and once one is gone all lines go to all
// directly.
//
// MPI reports no dead rank. Each process watches those of its own host through file descriptors of
// processes, and reports deaths to the others. If no rank of a host survives, no process can: calls
// with its ranks end by their timeout, which names them.
//
// MPI starts once in a process. It ends by [UncheckedComm.Close] if the transport does not connect
// the process, otherwise when dist.Spawn returns, or without Spawn in dist.DestroyProcessGroup. It
// waits there for the other processes, as MPI_Finalize does; for 0.3 s if the program has failed or
// another process has died.
package mpi
