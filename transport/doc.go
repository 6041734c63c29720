// Package transport is the contract between the engine of collectives (package
// ccl) and the media that connect ranks: goroutines of one process
// (transport/local), processes of one node (transport/shm).
//
// # Model
//
// A transport connects the R ranks of a group. Each rank holds one [Endpoint].
// The endpoint knows bytes; it does not know element types, operations or
// collectives. It offers steps, not callbacks, and the engine strings them
// together: a call [Endpoint.Enter]s (every rank publishes one line and waits
// for everybody else's), moves bytes, by messages between ordered pairs or
// through a window on everybody's buffers, and, where users' memory was
// exposed, [Endpoint.Complete]s.
//
// Calls are numbered from 1. All ranks enter the same calls in the same order;
// a rank that refuses a call for its arguments says so with [Endpoint.Refuse]
// and consumes the number without entering.
//
// Beside its calls an endpoint has a [P2P], for messages that belong to none. Where
// endpoints implement [Groups], some ranks of a group can form another.
//
// # Concurrency
//
// An endpoint belongs to its rank: its methods are called by one goroutine at a
// time. [Endpoint.Fail], [Endpoint.Failed], [Endpoint.Failure],
// [Endpoint.Close], [Endpoint.Rank], [Endpoint.Size] and [P2P.Wake] may be called at
// any time by anyone. The lane of an endpoint has a goroutine of its own, and
// [Groups] may be used by any.
//
// # Failure
//
// A group is fail-stop. The first failure that [Endpoint.Fail] records is the
// failure of the group; every wait notices it. Refusals, departures, failures
// and cancelled contexts only interrupt a wait: the wait tests once more
// whether what it waited for is there, and fails only if it is not. Waits
// return a context's error, [*PeerLostError], [*TimeoutError],
// [*RefusedError], [*ProtocolError] or [ErrFailed].
package transport
