// Package syncmodel specifies how the ranks of a group synchronise, and checks
// the specification: its test explores every order in which two or three ranks
// can take their atomic steps.
//
// It holds no code for users. program_test.go is the protocol, one shared load,
// store or read-modify-write per step, each with the rule it stands for;
// rules_test.go names the rules. The test also takes the rules away one by one
// and demands that a property breaks each time, so that no rule is there in
// vain. With -v it prints how, step by step.
//
// # Model
//
// Calls are numbered from 1. Every rank makes them in the same order, or fails.
//
// Words with one writer, the rank they belong to: two lines (epoch; hash,
// payload and fingerprint as plain memory), done, out, refused (first and count
// of the latest run of refused calls), left, waitOn. done of a rank may be stored by the one that claimed
// its body. Words with several writers: claimed, one per rank; fail
// (CAS from zero, carries the first cause), events, sleepers; in parked mode
// arrived, completed, folders, job, claim, finished. A rank's channel holds one
// token, sent without blocking by anyone, received by the rank.
//
// Publish: in call s a rank writes line s mod 2, then stores epoch s there.
//
// Wait: it tests one peer after the other. While a test fails it looks, once in
// any case and then whenever events has changed, at fail, and at left, the word it
// waits for and refused of every peer, and at its context. All these only interrupt:
// the test is repeated, and only if it fails again is the call lost. So a call that
// succeeded on one rank succeeds on all, whatever that rank does next. The look at
// all peers is left out if there was one after the last event that found nobody who
// has left, or refused this call or one to come.
//
// Overwrite: line s mod 2 is written anew for s+2, after all epochs s+1 were
// seen, each of which was stored after its rank had read everything of s.
//
// Settle: a refused call consumes its number and returns at once. That would
// break the line before, so refused calls never touch lines: they extend
// refused, and the next call publishes only when every peer has refused the
// same calls. A peer that entered one of them fails the group itself, for it
// finds them refused.
//
// Expose: when a call lets peers touch a rank's memory, each rank loads fail
// after its own epoch is stored and all peers are reached, and does not go on if
// it is set. At this one place failure beats reached.
//
// Complete: such a call ends with done, stored by every rank and awaited by all.
//
// Leave early: a rank that fails a call sets fail, if nobody has, and stores
// out, whatever the kind of its call: ranks that disagree about the kind wait
// for each other too. If it exposed memory it then waits, deaf to everything
// else, for each peer until that peer has not published the call (it will find
// fail), is done, or is out.
//
// Payloads: a call that exposes nothing ends as soon as all are reached. Whoever reads
// payloads looks at nothing any more, least of all at fail.
//
// Close: somebody else sets closed of a rank at any time, then its left, and bumps
// events. The rank loads closed before it takes a number, again when it has it, and in
// every look. lifetime_test.go is a model of who frees what it used.
//
// Deaths: a process that dies stores nothing and bumps no events. Where ranks are
// processes sleeps are bounded. After one that ran out a rank looks at everything, and
// at the locks that the living hold.
//
// Parked mode: a rank adds 1 and the number of calls it refused before to
// arrived. Who makes it ranks times s is last; it raises folders, compares,
// loads fail, runs every rank's body, stores completed, lowers folders and
// leaves a token for everyone. A leaver waits until folders is 0, and then tests
// completed once more, so that such a call is never torn. In a large call the
// last arriver opens a job. Whoever wakes raises folders and claims bodies, with
// a look at fail before each; the one that brings finished to the number of
// ranks completes the call. Kernels that exchange messages are not run for
// others: the last arriver only says that all have arrived.
//
// Claimed bodies: where ranks do not sleep from the start, a shared call's bodies
// are claimed, each by a CAS on its rank's claimed. A rank that has passed the entry
// claims its own, runs it, and then those of ranks that arrived and fell asleep,
// before it stores its own done; it stores done of theirs. Who finds its own body
// claimed waits until all are done. A leaver, too, tests at the end whether all are:
// while it slept the call may have been completed, and the group have failed in the
// next.
//
// Tokens: between processes a token is a word of shared memory and a futex. token_test.go
// is a model of them alone, and shows what they need so that no wake is lost. One rule no
// protocol can keep: a waker may be killed between leaving a token and the system call. So
// such sleeps are bounded.
//
// Turns: ranks that do not see each other's memory show copies in two halves, which they
// use in turns. turn_test.go is a model of them alone, with failures and deaths, and shows
// that two are enough and that calls made of them keep agreement.
//
// Lanes: between goroutines a lane shows a message in place, until the receiver has copied
// it. lane_test.go is a model of that alone: one sender, one receiver, and a failure and
// closes at any moment. It shows when a send may return, and what ends a rest.
//
// Sleep: a rank that waits for a peer stores waitOn, adds itself to sleepers and
// tests again before it receives from its channel; the peer stores what is
// waited for and then loads sleepers. For completed and folders no flags are
// needed: they and all events reach every rank.
//
// # Concurrency
//
// Memory is sequentially consistent, as Go's sync/atomic is. Two plain accesses
// of which one writes must never both be possible as next steps: in such a
// memory that is what a data race is.
//
// Every run is finite: a rank that would only load the same values again is held
// until one of them changes. A state without successor in which not every rank
// is through is therefore a hang, and there is no other. A context that may end
// is no way out; a timeout is, in scenarios that say that they need it.
//
// # Failure
//
// The properties, in every order of steps:
//
//   - data safety: what is read from a line belongs to the reader's call;
//   - window safety: a rank's memory is touched between its arrival in a call
//     and its return from it, never before or after;
//   - agreement: a call that succeeds on one rank was made by all and succeeds
//     on all, unless a context, a timeout, a panic or somebody outside the group
//     ended that very call;
//   - one verdict: all ranks that fail return the same cause;
//   - right verdict: it is the one that the scenario calls for; a run of calls
//     that all ranks refuse leaves the group alive;
//   - progress: no rank waits for ever.
//
// A violation is reported with the shortest way to it.
package syncmodel
