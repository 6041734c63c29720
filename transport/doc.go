// Package transport is the contract between the engine of collectives (package ccl) and the
// media that connect ranks: goroutines of one process (transport/local), processes of one node
// (transport/shm), processes of several nodes (transport/tcp, transport/mpi).
//
// # Model
//
// A transport connects the ranks of a group. Each rank holds one [Endpoint]. The endpoint moves
// bytes; except for [Collectives] it knows neither element types nor operations nor collectives.
// Its methods are steps, and the engine puts calls together from them:
//
//   - [Sync]: the ranks Enter a call. Each publishes one line (payload, hash, fingerprint) and
//     waits for the lines of all others. A call that touches other ranks' memory ends with
//     Complete.
//   - [Memory] or [Staging]: the buffers of all ranks, in place or as copies.
//   - [Messages]: bytes between ordered pairs of ranks, inside of calls.
//   - [P2P]: messages that belong to no call.
//   - [Lifecycle]: failures, leaving, closing.
//
// An endpoint may also implement [Groups] (groups of some of the ranks), [Regions] (memory that all
// ranks see), [Nodes] (which rank is on which node), [Recorder] (memory of the flight recorder),
// [FaultGuard] (shared memory that can vanish) and [Collectives] (those of a library of its own).
//
// Calls are numbered from 1. All ranks enter the same calls in the same order. A rank that
// rejects the arguments of a call consumes its number with Reject instead of entering it.
//
// A transport registers a [Provider], by which programs choose it, or "auto" does.
// docs/guides/writing-a-transport.md leads to one of your own.
//
// # Concurrency
//
// One goroutine at a time calls the methods of an endpoint. Exceptions: any goroutine may call
// Fail, Failed, Failure, Close, Rank, Size and [P2P.Wake] at any time; the methods of P2P belong
// to one goroutine of their own; [Groups] may be used by any.
//
// # Failure
//
// A group is fail-stop. The first failure that Fail records is the failure of the group, and every
// wait notices it. Rejected calls, departures, failures and cancelled contexts interrupt a wait: it
// tests its condition once more and fails only if that still does not hold. Waits return the error
// of a context, [*PeerLostError], [*TimeoutError], [*RejectedError], [*ProtocolError] or
// [ErrFailed].
package transport
