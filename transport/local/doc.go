// Package local connects the goroutine ranks of one process.
//
// # Model
//
// The ranks share an address space, so the transport copies no data. A view shows the users'
// own buffers, and a message is a pointer to the sender's memory. The receiver reads it before
// the sender continues.
//
// Ranks wait in one of two ways. If the process has a core for every rank that it hosts, ranks
// poll each other's lines for a while and then park, and each rank runs its own body of a call.
// Otherwise ranks park at once, because polling would take the core from the awaited rank. The
// last rank to arrive then runs all bodies of the call, if any rank may run them. For large
// calls it wakes other ranks to help, up to the number of cores.
//
// A group that ranks form (transport.Groups) waits like its parent group; its first member to
// arrive makes it. P2P messages are pointers as well, so a rank whose group has failed must
// withdraw its messages before it reuses the memory.
//
// # Concurrency
//
// Each endpoint belongs to its rank; see package transport.
//
// # Failure
//
// A goroutine does not die alone: a *transport.PeerLostError means that a rank's endpoint was
// closed.
package local
