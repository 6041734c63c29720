// Package syncmodel specifies how the ranks of a group synchronise, and checks the
// specification: its tests explore every order in which two or three ranks can take their
// atomic steps.
//
// It has no code for users. program_test.go is the protocol, one shared load, store or
// read-modify-write per step; rules_test.go names the rules that the steps implement. The
// tests also remove the rules one by one, and a property must break each time, so that no
// rule is superfluous. With -v they print the steps that lead there.
//
// # Model
//
// Calls are numbered from 1. Every rank makes them in the same order, or fails.
//
// Words with one writer, their rank: two lines (epoch; hash, payload and fingerprint as
// plain memory), done, out, rejected (first and count of the latest run of rejected calls),
// departed, waitOn. The rank that claimed a body may store done of the body's rank. Words with
// several writers: claimed, one per rank; fail (CAS from zero, carries the first cause),
// events, sleepers; in parked mode arrived, completed, runners, job, claim, finished. A
// rank's channel holds one token, which any rank sends without blocking.
//
// Publish: in call s a rank writes line s mod 2, then stores epoch s there.
//
// Wait: a rank tests one peer after the other. While a test fails it looks, once in any case
// and then whenever events has changed, at fail, at its context, and at departed, rejected and the
// awaited word of every peer. All these only interrupt: the rank repeats the test, and the
// call fails only if the test fails again. So a call that succeeded on one rank succeeds on
// all, whatever that rank does next. A rank leaves out the look at all peers if an earlier
// look, after the last event, found that none has left or rejected this call or a later one.
//
// Overwrite: line s mod 2 is written again for s+2, after all epochs s+1 were seen, each of
// which was stored after its rank had read everything of s.
//
// Settle: a rejected call takes its number and returns at once. That would break the rule
// before, so rejected calls do not touch lines: they extend rejected, and the next call
// publishes only when every peer has rejected the same calls. A peer that entered one of them
// fails the group, since it finds them rejected.
//
// Expose: when a call lets peers touch a rank's memory, each rank loads fail after its own
// epoch is stored and all peers are reached, and stops if it is set. Only here, before memory
// is touched, does failure take precedence over reached.
//
// Complete: such a call ends with done, which every rank stores and all await.
//
// Leave early: a rank that fails a call sets fail, if it is not set, and stores out, whatever
// the kind of its call: ranks that disagree about the kind also wait for each other. If it
// exposed memory it then waits, without any interrupt, until each peer either has not
// published the call (it will find fail), or is done, or is out. If all ranks are done then, the
// call has succeeded: a rank that was done before the group failed cannot tell otherwise whether
// the last one will be done, which then succeeds. A rank that is out before it is done is never
// done, so all ranks find the same.
//
// Payloads: a call that exposes nothing ends as soon as all peers are reached. A rank that
// reads payloads checks nothing else, in particular not fail. A call may turn out to show
// payloads only when all are reached: then its ranks store done, and do not wait for it.
//
// Close: another goroutine sets closed of a rank at any time, then its departed, and bumps events.
// The rank loads closed before it takes a number, again when it has it, and in every look.
// lifetime_test.go models who frees the endpoint.
//
// Deaths: a process that dies stores nothing and bumps no events. Between processes sleeps are
// bounded. After a timeout of the sleep a rank looks at everything, and at the locks that
// living processes hold.
//
// Parked mode: a rank adds 1, and the number of calls that it rejected before, to arrived. The
// rank that makes it ranks times s is the last arriver: it raises runners, compares, loads
// fail, runs every rank's body, stores completed, lowers runners, and leaves a token for every
// rank. A leaver waits until runners is 0, and then tests completed once more, so that such a
// call never succeeds on some ranks only. In a large call the last arriver opens a job. A rank
// that wakes raises runners and claims bodies, with a load of fail before each; the rank that
// brings finished to the number of ranks completes the call. Kernels that exchange messages are
// not run for other ranks: the last arriver only announces that all have arrived.
//
// Claimed bodies: where ranks poll before they sleep, the bodies of a shared call are claimed,
// each by a CAS on its rank's claimed. A rank that has passed the entry claims and runs its own
// body, then the bodies of ranks that arrived and fell asleep, and stores done of these before its
// own. A rank that finds its own body claimed waits until all are done. A leaver, too, tests at
// the end whether all are: while it slept the call may have been completed, and the group have
// failed in the next.
//
// Tokens: between processes a token is a word of shared memory and a futex. token_test.go
// models them alone and shows what they need so that no wake is lost. One case no protocol
// covers: a waker may be killed between leaving a token and the system call. So such sleeps are
// bounded.
//
// Messages beside calls, and the rounds in which ranks exchange copies, have no model: package
// test/seeds runs their code, and finds each of their rules when it is left out.
//
// Sleep: a rank that waits for a peer stores waitOn, adds itself to sleepers and tests again
// before it receives from its channel; the peer stores the awaited word and then loads
// sleepers. completed and runners need no flags: they and all events wake every rank.
//
// # Concurrency
//
// Memory is sequentially consistent, as Go's sync/atomic is. Two plain accesses, one of them
// a write, must never both be possible as next steps: that would be a data race.
//
// Every run is finite: a rank that would only load the same values again is held until one of
// them changes. A hang is a state without successor in which not every rank has finished. A
// context that may end is no way out; a timeout is, in scenarios that need it.
//
// # Failure
//
// docs/inside/model.md has the properties, which hold in every order of steps. A violation is
// reported with the shortest sequence of steps that leads to it.
package syncmodel
