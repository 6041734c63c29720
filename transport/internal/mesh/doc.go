// Package mesh connects the ranks of a job, which are processes of any nodes, by TCP: each with
// each.
//
// # Model
//
// Rank 0 listens at an address that the others find by a Rendezvous: fixed by MASTER_ADDR and
// MASTER_PORT, in the store of torchrun's agent, or in a file of the launcher. They dial it, in any
// order and until the deadline, and say who they are. Rank 0 checks that they belong together, and
// sends all of them a table of the addresses at which each listens. Then each rank dials those
// below it and is dialed by those above it, and tells rank 0. When all have done so, rank 0 tells
// them that the mesh is ready, and all listeners are closed:
//
//	rank 1                     rank 0                     rank 2
//	member ──────────────────►        ◄────────────────── member
//	       ◄────────────────── table  ──────────────────►
//	       ◄══════════════════ lanes of each pair ══════►
//	linked ──────────────────►        ◄────────────────── linked
//	       ◄────────────────── ready  ──────────────────►
//
// Every connection begins with the handshake of internal/handshake, so that all that is decoded
// comes from those who know the job's secret. Without one, ranks listen at loopback addresses only.
//
// After the join nothing of this package listens or runs: nobody can disturb a running job by
// connecting to it.
//
// # Concurrency
//
// Connect may be called concurrently, for different jobs or attempts.
//
// # Failure
//
// Connect succeeds on all ranks or fails on all that have come, with the first reason that rank 0
// learned. errors.As finds *transport.TimeoutError with the ranks that did not come,
// *transport.PeerLostError with one whose connection broke, and *transport.AbortedError with the
// one that gave up or does not belong to the others. The texts have the hosts. Rank 0 stays for a
// moment after a failure, to tell those that come late.
//
// Peers who do not know the secret fail nothing. The text of a timeout says how many there were.
package mesh
