// Package shm connects ranks through one arena of memory that holds no pointers:
// lines, slots for messages, staging for windows. [Join] lays it into a file that
// processes of one node map, each of them one rank (Linux); [NewHeap] on the heap of
// one process, where the ranks are goroutines.
//
// # Model
//
// Nothing that a rank writes for others is a pointer, and no rank can see
// another's buffers. Messages are copied through slots, a bounded number of
// bytes at a time; windows show copies, one piece after the other, in two halves
// that alternate. Buffers of all ranks that lie in regions (transport.Regions) are
// shown in place: each says in the arena where its own lie. [Geometry] says how large
// the parts are; layout in geometry.go draws them.
//
// Messages of lanes go through channels of their own, from the pool that those of calls
// come from. A group that some ranks form (transport.Groups) has an arena of its own: of
// processes, a segment like that of a job, of the size that [GroupGeometry] says.
//
// A kernel that is right here does not rely on buffering, on shared memory or on
// seeing more than one piece at once; that is what the conformance suite uses the
// heap arena for, with the smallest geometry.
//
// Processes meet in a segment: a file in /dev/shm, whose name holds the user's id and
// the job's name (see Job). Rank 0 makes it without a name, gives it all of its memory,
// and only then the name; the others find it, check its header, and say who they are.
// When all have, the name is taken away: from then on the kernel frees the file when the
// last rank ends, however it ends. If rank 0 is killed before, the last of the others
// takes the name away; what is left behind where one never comes is found and removed by
// [Leftovers] and [RemoveLeftovers]. Every rank holds a lock on a byte of the file for as
// long as it lives, across pid namespaces, and whoever waits for a rank looks at its
// lock now and then. A rank that cannot reach the file tells the others by a symbolic link
// beside it, which is gone after a second; one that cannot reach a group's file, by the arena
// of the group whose ranks make it. Ranks poll if together they may use a core for each; else they
// yield, and soon sleep on a futex in the arena.
//
// # Concurrency
//
// As the contract in package transport says: an endpoint belongs to its rank. Join may
// be called by several goroutines.
//
// # Failure
//
// As the contract says. What reaches other ranks of a failure is its kind, the
// ranks, the call and the text; the error value stays with the rank that had it. A
// process that ends, even by SIGKILL, is a *transport.PeerLostError with its rank and
// pid for those who wait for it.
//
// Memory that the system does not have is an error of Join, since the file gets all of it
// there, and not a signal at the first touch. If somebody truncates the file later, calls
// on it fail instead of the process: its endpoint is a transport.Guard. Only programs that
// touch a region themselves are not protected. docs/guides/processes.md says what to do about
// each error.
package shm
