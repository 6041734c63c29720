// Package groupsync is the synchronisation protocol that transports share: how the
// ranks of a group publish and await each other's lines, refuse, fail, leave
// and wait.
//
// # Model
//
// Every rank owns one [State] of 512 bytes that it alone writes and all read,
// and the group owns a few [Words] with several writers. Call s uses line s mod
// 2 of each rank: the rank writes what it brings (payload, hash, fingerprint),
// then stores s into the line's epoch; it has seen everybody once all epochs are
// at s. Epochs only grow and are never reset.
//
// One full synchronisation per call makes two lines enough: a rank rewrites the
// line of call s for call s+2, after it has seen all epochs s+1, and a rank
// stores s+1 only after it has read what it wanted of s. A refused call would
// break this, since it returns without waiting; so refused calls never touch
// the lines, they extend the run in refusedFirst and refusedLast, and the next
// call that is not refused first settles: it waits until every peer has refused
// the same run.
//
// A call that exposes memory ends with a completion: done is stored, and all
// done are awaited. A rank that gives up inside such a call stores out after the
// group's failure is set, and waits for each peer until that peer has not
// arrived, is done or is out; and a rank that enters loads the failure after its
// own arrival is visible: of the two, one sees the other.
//
// A [P2P] waits beside its rank's calls, with a word (resting) and a token of its own.
// It sleeps for all ranks at once, and its events are those of the group.
//
// Package test/syncmodel holds the protocol as an explicit-state model, and
// docs/inside/model.md says which of its rules, which comments name, is where.
//
// # Concurrency
//
// A [Member] belongs to one goroutine, but for Fail, Failed, Failure, Leave, Seat
// and Gone; its [P2P] to another.
// A wait polls the word it waits for, for a while that adapts to how earlier
// waits ended, and then parks on a channel: it announces whom it waits for
// (waitOn, sleepers), tests once more and sleeps; whoever stores a word loads
// sleepers afterwards. Both are sequentially consistent, so one sees the other.
//
// # Failure
//
// A timeout names the ranks that have not entered the call. If all have, it goes from each
// rank that sleeps to the one it sleeps for, and names the one at the end.
//
// Failures, refusals, departures, contexts and timeouts interrupt a wait. After
// they were read the word is tested once more, and only if it is still behind
// has the wait failed.
package groupsync
