// Package packet connects processes that share no memory, above a wire that carries packets: the
// ranks' endpoints, their messages and views, and what they know of each other. Transports mpi and
// tcp have wires of their own, and share the rest.
//
// # Model
//
// Each process has copies of what the ranks of its groups publish (see package groupsync). Packets
// bring the copies up to date: a rank that enters a call sends its line, and so on; a kernel's
// messages are packets too. A [Wire] carries packets between processes, in order between each pair.
// A packet consists of bytes of the wire, and of a body to which the wire refers where it does not
// copy: the memory of a user's message, or a piece of a view.
//
// In a group of few ranks each sends its line to all others. In a larger one ranks pass lines on,
// in rounds: a rank has sent a call's lines after log2 R packets (see directRanks). Packets of one
// rank are therefore in order, but its line may come before or after them.
//
// The ranks of a node also join a segment of transport shm, which connects groups on that node, and
// the level of the node in groups on several.
//
// In a group between nodes no rank sees the memory of another one. A view therefore shows copies,
// which ranks send each other: to each rank the part that it reads, if the kernel reads no more
// (ccl.Kernel.ReadsOwnPart), otherwise all.
//
// The lowest rank of a group that is still there, and replies to queries, is its coordinator. It
// decides which failure is the group's, and whether the group was formed.
//
// # Concurrency
//
// Whoever waits polls the wire, one goroutine at a time. While the ranks of a process compute, a
// goroutine of the process (tend) replies to the other ranks. If the wire is an [Awaiter] it waits
// for packets, unless a rank that has polled for some microseconds does: one goroutine waits, and
// wakes the others. Of another wire it polls every millisecond, or every five once nothing has
// come for a second, or every 20 as long as ranks of the process begin collectives of the wire's
// library. It ends when all endpoints are closed.
//
// # Failure
//
// A rank that gives up a wait first queries all others for what they have published, for an eighth
// of its timeout and two seconds at most, so that its error rests on what had happened and not on
// what had arrived. Replies carry the rank's own lines, which a rank that is late or gone may hold
// up. A rank that leaves sends its lines to all first, and once one is gone all lines go to all
// directly.
//
// A wire reports processes that it no more reaches, as [PeerError]. Those of its own host a process
// watches itself where the wire is no Awaiter, through file descriptors of processes. Each process
// reports deaths to the others. If no rank of a host survives, and the wire does not notice, calls
// with its ranks end by their timeout, which names them.
package packet
