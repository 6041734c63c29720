// Package stress makes random programs for the ranks of a job, and checks what they
// compute: tests run them on goroutines and on processes.
//
// # Model
//
// A [Program] is drawn from a seed: the same on every rank, wherever it runs. It makes
// groups that overlap, by NewGroup and by Split, of the first group and of each other,
// and closes them; in them it makes every collective there is, of many types,
// operations, lengths and algorithms, also where ranks bring unlike lengths; and beside
// these it sends messages. Calls are made, or begun and waited for later, each rank as
// it likes. The numbers are such that every order of operations gives the same result,
// which the program knows: it compares bits, and looks also at what must stay as it is.
//
// A program is a sequence of events, and each rank does its own part of one after the
// other. So that it cannot hang, what an event waits for is done by parts of the same
// event or of earlier ones.
//
// [Departures] are programs of a second kind. Their ranks leave at random moments: one group
// or all, beside calls that run, with calls in the queue and messages under way, by Close,
// Abort, DestroyProcessGroup or the end of their worker. Every rank notes in an [Account]
// how each of its calls and messages ended, and [Departures.Check] holds the accounts of all
// ranks against these rules, whose names begin its errors:
//
//   - buffers: whoever gets no error has the right result, and inputs are as they were.
//   - written late: a rank rewrites its buffers at once when a call or message has ended, with
//     or without an error. No rank writes them later; and as what it rewrote is no right
//     result, no rank reads them later either.
//   - ran alone: no rank succeeds in a call that another has not come to, or has not made
//     because it had failed before.
//   - torn: a call succeeds on all ranks if all make it, and each that leaves the group leaves
//     after its own part of the call, and of all calls before, has ended.
//   - names: an error is PeerLostError with a rank that has left by then, AbortedError with one
//     that has left and aborted or whose worker fails, or ErrClosed on a rank that has left.
//   - dropped: the calls and sends that a worker has begun before it returns without an error
//     are completed, unless another worker has failed.
//   - not counted: a Close or DestroyProcessGroup that drops calls or messages says so.
//   - lost message: what was sent is received as long as the group lives, whoever leaves.
//   - no end: every Work gets a result or an error.
//
// # Concurrency
//
// Each rank has one goroutine that calls [Program.Run] or [Departures.Run]; the latter starts
// others, which end before it returns, or with the last Work.
//
// # Failure
//
// Program.Run returns the first error of a call, or what is wrong with a result, with the
// number and the text of the event. The other ranks are not told. Departures.Check returns
// all that is wrong.
package stress
