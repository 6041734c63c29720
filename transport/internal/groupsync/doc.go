// Package groupsync implements the synchronisation protocol that transports share: the ranks
// of a group publish lines, wait for each other, reject calls, fail and leave.
//
// # Model
//
// Each rank owns one [State] of 512 bytes, which it alone writes and all ranks read. The
// group owns a few [Words] with several writers. Call s uses line s mod 2 of each rank: the
// rank writes its payload, hash and fingerprint, then stores s into the line's epoch. All
// ranks have entered the call once all epochs have reached s. Epochs only grow and are never
// reset.
//
// Each call synchronises all ranks once, so two lines suffice. A rank overwrites the line of
// call s in call s+2, after it has seen all epochs at s+1. A rank stores s+1 only after it has
// finished reading the lines of s.
//
// A rejected call returns without waiting, so it must not touch the lines. Instead it extends
// the run of calls in rejectedFirst and rejectedLast. The rank's next call that is not rejected
// settles the run: it waits until every peer has rejected the same calls.
//
// A call that exposes memory ends with a completion: each rank stores done and waits for done
// of all ranks. A rank that gives up inside such a call sets the group's failure, stores out,
// and then waits for each peer that has arrived until that peer is done or out. A rank that
// enters loads the failure after its own arrival is visible. One of the two ranks therefore
// sees the other.
//
// Ranks that share no memory have copies of the states in every process. The transport brings them
// up to date; see [Remote].
//
// A [P2P] waits independently of its rank's calls, with its own word (resting) and token. It
// waits for all ranks at once, and shares the group's event counter.
//
// Package test/syncmodel models the protocol and explores its states. Comments here name the
// model's rules; test/syncmodel/rules.txt maps each rule to its file.
//
// # Concurrency
//
// A [Member] belongs to one goroutine, except for Fail, Failed, Failure, Leave, RankIn
// and CheckMembers, which any goroutine may call. Its [P2P] belongs to a second goroutine.
//
// A wait polls its word first; how long depends on whether the rank has its core for itself (see
// budget). Then it parks: it announces the rank it waits for (waitOn, sleepers), tests the word
// once more and sleeps. A rank that stores a word loads sleepers afterwards. All of these
// operations are sequentially consistent, so either the sleeper sees the word or the writer sees
// the sleeper.
//
// # Failure
//
// A timeout names the ranks that have not entered the call. If all ranks have, it follows the
// chain of waits from rank to rank and names the rank at its end.
//
// Failures, rejections, departures, contexts and timeouts interrupt a wait. An interrupted
// wait tests its word once more, and fails only if the word is still behind.
package groupsync
