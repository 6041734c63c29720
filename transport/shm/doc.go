// Package shm connects ranks through an arena: shared memory without pointers, which holds
// lines, message slots and staged data. [Join] places the arena in a file that processes of one
// node map; each process is one rank (Linux only). [NewHeap] places it on the heap of one
// process, where the ranks are goroutines.
//
// # Model
//
// No rank can see another rank's buffers. Messages are copied through slots, a bounded number of
// bytes at a time. A view shows copies, one piece per round, in two halves that alternate. If the
// buffers of all ranks lie in regions (transport.Regions), they are shown in place; each rank then
// stores in the arena where its buffers lie. [Geometry] sets the sizes of the arena's parts, and
// layout in geometry.go draws them.
//
// P2P messages use separate channels from the same pool as messages of calls. A group that ranks
// form (transport.Groups) has its own arena with the sizes of [GroupGeometry]; if the ranks are
// processes, it is a segment like a job's.
//
// A kernel that works here relies neither on buffering nor on shared memory, nor on seeing more
// than one piece at once. The conformance suite therefore runs kernels on a heap arena with the
// smallest geometry.
//
// # Segments
//
// Processes meet in a segment: a file in /dev/shm whose name consists of the user's id and the
// job's name (see [Job]).
//
//   - Rank 0 makes the file without a name, allocates all of its memory, and then names it.
//   - The other ranks open the file, check its header and write their process ids into it.
//   - When all have, rank 0 removes the name. From then on the kernel frees the file when the
//     last rank ends, however it ends.
//   - If rank 0 is killed before, the last of the other ranks to come removes the name. If one
//     of them never comes, the file remains; [Leftovers] and [RemoveLeftovers] find and remove it.
//
// Each rank holds a lock on one byte of the file for as long as it lives. Locks work across pid
// namespaces. A rank that waits checks the locks of its peers now and then.
//
// A rank that cannot open the job's file, or is of another size, tells the others by a symbolic
// link beside it, which it removes after a second. A rank that cannot open a group's file tells
// them in the arena of the parent group. Ranks of different users never open one file; some of them
// can tell that they are of one job.
//
// Ranks poll if together they may use one core per rank. Otherwise they yield for a while, then
// sleep on a futex in the arena. Of two ranks that poll on one core, one moves to another core that
// it may use.
//
// # Concurrency
//
// An endpoint belongs to its rank; see package transport. Join may be called concurrently.
//
// # Failure
//
// Other ranks learn a failure's kind, ranks, call and text. The error value stays with the rank
// that had it. Ranks that wait for a process that has ended, even by SIGKILL, get a
// *transport.PeerLostError with its rank and process id.
//
// If the system lacks the memory, Join returns an error: it allocates all memory of the file, so
// that touching it later raises no signal. If the file is truncated later, calls on it fail but
// the process lives, because its endpoint is a transport.FaultGuard. This does not protect a
// program that touches a region itself. docs/reference/troubleshooting.md lists the errors and
// their remedies.
package shm
