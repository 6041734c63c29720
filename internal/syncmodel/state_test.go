package syncmodel

import "fmt"

// maxRanks bounds the ranks of a scenario; with 3 every pairwise rule meets a bystander.
const maxRanks = 3

// A state is everything the ranks share, and where each of them stands. It is comparable, so that a map
// remembers which states were visited; small integers keep it short.
type state struct {
	rank [maxRanks]rank

	// Words of the group that several ranks write.
	fail     cause // CAS from the zero cause: the first failure, which every rank returns
	events   uint8 // bumped after every refusal, leave and failure was stored
	sleepers uint8 // how many ranks are flagged as asleep

	// The same, for parked mode.
	arrived   uint8 // 1 for every call that a rank made, refused ones counted late
	completed uint8 // last call of which every body was run
	folders   uint8 // how many ranks may be running bodies of others
	job       uint8 // last call whose bodies may be claimed by helpers
	claim     uint8 // next body to claim
	finished  uint8 // bodies that were run
}

// A rank is one participant: its words, its private memory, and what the checker notes about it.
type rank struct {
	// Words that this rank alone writes and its peers read.
	line    [2]line
	done    uint8 // last call in which it touches no peer's memory any more
	out     uint8 // last call that it left on a failure
	refused run   // its latest run of refused calls, one word
	left    bool  // it will make no more calls
	waitOn  uint8 // 1 + the rank it sleeps for
	token   bool  // its channel, of capacity 1; peers send, it receives

	// Private.
	at       pc    // its next step
	then     pc    // where to go on after tokens or wakes
	call     uint8 // index into its script; the sequence number is call + 1
	owed     uint8 // refused calls that it has not settled
	peer     uint8 // position in a loop over its peers
	wait     wait  // what it waits for
	seen     int8  // events at its last look in this wait
	sawLeft  bool  // left, as it was loaded
	slept    bool  // sleepers != 0, as it was loaded
	flagged  bool  // it counts among sleepers
	why      kind  // what interrupted it
	folding  bool  // it is the last arriver of this call
	helped   bool  // it has run all that it will run of this call
	ran      uint8 // bodies it ran of this call, not yet in finished
	verdict  cause // the error it returned
	exposed  uint8 // checker: the call in which peers may touch its memory
	made     uint8 // checker: the last call it published
	ok       uint8 // checker: bit set of calls that succeeded,
	tore     uint8 // in which this rank was cancelled or panicked,
	failed   uint8 // that failed for reasons of the group,
	refusals uint8 // and that were refused for their arguments
}

// A line is what a rank publishes for one call. The epoch is atomic; call and name stand for hash, payload
// and fingerprint, which are plain memory.
type line struct {
	epoch uint8
	call  uint8
	name  byte
}

// A run of refused calls: count of them from first on.
type run struct{ first, count uint8 }

func (r run) covers(first, count uint8) bool {
	return r.first <= first && first+count <= r.first+r.count
}

// A cause is the content of the fail word: what happened, whose doing it is, and in which call it was found.
// The zero cause is "no failure".
type cause struct {
	kind kind
	by   uint8
	call uint8
}

type kind uint8

const (
	none      kind = iota
	cancelled      // a context ended, or the timeout passed
	panicked       // the kernel failed on one rank
	aborted        // a worker returned an error
	lost           // a peer left that was still needed
	arguments      // some ranks refused the call, some did not
	mismatch       // the ranks made different calls
	seen           // not a cause: the rank found fail set by a peer
)

var kindNames = [...]string{"none", "cancelled", "panicked", "aborted", "lost", "arguments", "mismatch", "seen"}

func (k kind) String() string { return kindNames[k] }

func (c cause) String() string {
	if c.kind == none {
		return "none"
	}
	return fmt.Sprintf("%v (rank %d, call %d)", c.kind, c.by, c.call)
}

// A wait is a condition that a rank waits for, tested with one load.
type wait uint8

const (
	forRefused   wait = iota // the peer refused the same run
	forEpoch                 // the peer published this call
	forDone                  // the peer finished with everybody's memory
	forOut                   // the same, or it left the call; the one test with two loads
	forCompleted             // the last arriver ran all bodies
	forFolders               // nobody runs bodies of others
)

// perPeer says that the condition is awaited from one peer after the other.
func (w wait) perPeer() bool { return w <= forOut }

// interruptible waits depend on what peers will do. The others end by themselves: all they wait for is
// that ranks which have already seen the failure, or are about to, come out.
func (w wait) interruptible() bool { return w <= forDone || w == forCompleted }
