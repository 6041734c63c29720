// Package stress draws random programs for the ranks of a job and checks their results. Tests
// run them on goroutines and on processes.
//
// # Model
//
// A [Program] is drawn from a seed and is the same on every rank. It makes and closes
// overlapping groups, by NewGroup and Split. In them it calls every collective, with many
// types, operations, lengths and algorithms, also with unequal lengths per rank, and between
// the calls it sends messages. Each rank makes a call either synchronously or asynchronously.
// The inputs are chosen so that every order of operations gives the same result, which the
// program knows: it compares bits, and checks that inputs and gaps are unchanged.
//
// A program is a sequence of events; each rank does its part of one after the other. To
// exclude deadlocks, an event waits only for parts of the same event or of earlier ones.
//
// [Departures] are programs whose ranks leave at random moments: one group or all, during
// calls, with queued calls and messages in flight, by Close, Abort, DestroyProcessGroup or the
// end of their worker. Every rank records the end of each of its calls and messages in an
// [Account]. [Departures.Check] checks the accounts of all ranks against these rules, whose
// names begin its errors:
//
//   - buffers: a rank that gets no error has the right result, and inputs are unchanged.
//   - written late: a rank overwrites its buffers as soon as a call or message has ended, with
//     or without an error. No rank writes them later. No rank reads them later either, since
//     the overwritten values would give a wrong result.
//   - ran alone: no rank succeeds in a call that another rank has not reached, or has not made
//     because it had failed before.
//   - torn: a call succeeds on all ranks if all make it, and each rank that leaves the group
//     leaves after its own part of the call, and of all earlier calls, has ended.
//   - names: an error is a PeerLostError with a rank that has left by then, an AbortedError
//     with a rank that has left and aborted or whose worker fails, ErrClosed on a rank that has
//     left, or, of a receive from any rank, a TimeoutError that names all senders that have left.
//   - dropped: the calls and sends that a worker has started before it returns without an error
//     are completed, unless another worker has failed.
//   - not counted: a Close or DestroyProcessGroup that drops calls or messages returns an error.
//   - lost message: a message that was sent is received as long as the group lives, whichever
//     rank leaves.
//   - no end: every Work gets a result or an error.
//
// # Concurrency
//
// One goroutine per rank calls [Program.Run] or [Departures.Run]. Departures.Run starts
// others, which end before it returns, or with the last Work.
//
// # Failure
//
// Program.Run returns the first error of a call or a wrong result, with the number and the
// text of the event, and aborts the groups of the rank. Departures.Check returns all
// violations.
package stress
