// Package shm connects ranks through one arena of memory that holds no pointers:
// lines, slots for messages, staging for windows. The protocol is the one for
// processes of one node over a shared mapping; this version lays the arena on
// the heap of one process, where the ranks are goroutines.
//
// # Model
//
// Nothing that a rank writes for others is a pointer, and no rank can see
// another's buffers. Messages are copied through slots, a bounded number of
// bytes at a time; windows show copies, one piece after the other, in two halves
// that alternate. A kernel that is right here does not rely on buffering, on
// shared memory or on seeing more than one piece at once; that is what the
// conformance suite uses the heap arena for, with the smallest [Geometry].
//
// # Concurrency
//
// As the contract in package transport says: an endpoint belongs to its rank.
//
// # Failure
//
// As the contract says. What reaches other ranks of a failure is its kind, the
// ranks, the call and the text; the error value stays with the rank that had it.
package shm
