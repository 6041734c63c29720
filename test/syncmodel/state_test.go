package syncmodel

import "fmt"

// maxRanks bounds the ranks of a scenario: with three, every rule between two meets a bystander.
const maxRanks = 3

// A state is everything that the ranks share, and the step of each. It is comparable and small.
type state struct {
	rank [maxRanks]rank

	// Words of the group, written by several ranks.
	fail     cause // CAS from the zero cause: all ranks return the first failure
	events   uint8 // bumped after every rejection, departure and failure
	sleepers uint8 // number of ranks flagged as asleep

	// The same, for parked mode.
	arrived   uint8 // calls made or rejected, over all ranks
	completed uint8 // the last call of which every body was run
	runners   uint8 // number of ranks that may be running the bodies of others
	job       uint8 // the last call that wants helpers
	claim     uint8 // bodies handed out, of the current call
	finished  uint8 // bodies that were run, of the current call
}

// A rank is one participant.
type rank struct {
	// Words that it writes and its peers read.
	line     [2]line
	done     uint8 // the last call in which it has finished with its peers' memory
	out      uint8 // the last call that it left on a failure
	rejected run
	departed bool  // it makes no more calls
	waitOn   uint8 // 1 + the peer it sleeps for
	token    bool  // in its channel

	claimed uint8 // the last call in which its body was claimed: by itself, or by a peer

	dead   bool // its process has ended, without an event
	closed bool // it was closed, by itself or by another goroutine

	// Private.
	number      uint8 // of the call that it gives up, if it does
	at          pc    // the next step
	then        pc    // where to go on after tokens
	call        uint8 // index into its script: the number of the call is one more
	owed        uint8 // calls rejected since it last published
	peer        uint8 // position in a loop over its peers
	wait        wait
	seen        int8  // events, as of the last look of this wait
	look        uint8 // position in a loop over those it looks at
	before      int8  // events, as of the beginning of that,
	quiet       bool  // which has found nothing so far
	calm        int8  // events, as of a look at all that has found nothing
	sawDeparted bool  // a peer's departed, as loaded
	who         uint8 // is gone, or has rejected
	suspects    bool  // its sleep timed out: it looks at locks
	known       uint8 // the dead (bits) it has found in this wait
	slept       bool  // whether sleepers was not 0, as loaded
	flagged     bool  // it counts among sleepers
	why         kind  // what interrupted it
	last        bool  // it is the last arriver
	helped      bool  // it will run no more bodies in this call
	ran         uint8

	// Notes of the checker.
	exposed    uint8 // the call in which its memory may be touched
	made       uint8 // the last call it published
	verdict    cause // the error it returned
	ok         uint8 // calls (bits, so at most 8) that succeeded,
	failed     uint8 // that failed for reasons of the group,
	rejections uint8 // that it rejected,
	tore       uint8 // and that it was torn out of, so that others may succeed
}

// A line is what a rank brings to a call. The epoch is atomic; call and name stand for hash, payload and
// fingerprint, which are plain memory.
type line struct {
	epoch uint8
	call  uint8
	name  byte
}

// A run is count rejected calls, from first on: one word.
type run struct{ first, count uint8 }

func (r run) covers(first, count uint8) bool {
	return r.first <= first && first+count <= r.first+r.count
}

// A cause is the content of fail: what happened, whose doing it is, and in which call it was found.
type cause struct {
	kind kind
	by   uint8
	call uint8
}

func (c cause) String() string {
	if c.kind == none {
		return "none"
	}
	return fmt.Sprintf("%v (rank %d, call %d)", c.kind, c.by, c.call)
}

type kind uint8

const (
	none      kind = iota
	cancelled      // a context ended, or a timeout passed
	panicked       // the kernel failed on one rank
	aborted        // a worker returned an error, or another goroutine aborted the group
	lost           // a peer left that was still needed
	arguments      // some ranks rejected the call and some did not
	mismatch       // the ranks made different calls
	closed         // this rank was closed by another goroutine: to the others, it is lost
	foundFail      // not a cause: this rank found one
)

var kindNames = [...]string{"none", "cancelled", "panicked", "aborted", "lost", "arguments", "mismatch", "closed", "fail is set"}

func (k kind) String() string { return kindNames[k] }

// A wait is what a rank waits for.
type wait uint8

const (
	forRejected  wait = iota // a peer has rejected the calls that this rank has rejected
	forEpoch                 // a peer has published this call
	forDone                  // a peer has finished with the memory of all ranks
	forBodies                // the body of a rank, its own too, was run
	forOut                   // the same, or it is out
	forCompleted             // the last arriver is through
	forRunners               // no rank runs bodies of others
)

// perPeer waits are for one peer after the other.
func (w wait) perPeer() bool { return w <= forOut }

// interruptible waits depend on what peers are going to do. The others end by themselves: the failure is
// set, and all that is waited for is that ranks come out.
func (w wait) interruptible() bool { return w <= forBodies || w == forCompleted }
