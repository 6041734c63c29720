package transport

import "time"

// Failure is the first cause of a group's end, in the form in which it reaches
// every rank, also in other processes.
type Failure struct {
	Kind FailureKind
	By   int    // the rank that recorded it
	Seq  uint64 // the call in which it did; 0 outside of calls
	// Ranks are those the failure is about: the one lost, those missing, those
	// that refused. More than 64 are cut.
	Ranks []int
	// Missing are the ranks that had neither refused nor entered the call, where others
	// had refused. More than 64 are cut.
	Missing []int
	PID     int           // of the process that was lost, 0 if the rank is none
	After   time.Duration // of a timeout
	Text    string        // what happened, in words; at least TextBytes of it are kept
	// Cause is the error itself; it does not leave the process.
	Cause error
}

// TextBytes is how much of a failure's Text reaches the ranks of other processes, at least.
const TextBytes = 700

// FailureKind says what kind of failure it was.
type FailureKind uint32

const (
	// FailureMismatch: the ranks made different calls; each can see how from
	// the fingerprints of call Seq.
	FailureMismatch FailureKind = iota + 1
	// FailureRefused: Ranks refused call Seq, others did not.
	FailureRefused
	// FailurePeerLost: Ranks[0] is gone.
	FailurePeerLost
	// FailureTimeout: Ranks did not enter call Seq in time.
	FailureTimeout
	// FailureStuck: Ranks entered call Seq, but did not get on inside it in time.
	FailureStuck
	// FailureAborted: rank By gave up.
	FailureAborted
	// FailureOverlap: Ranks brought the same memory to call Seq, which writes it.
	FailureOverlap
)

// Timeout bounds the waits of a call.
type Timeout struct {
	// After ends a call that has waited for so long; 0 waits for ever.
	After time.Duration
	// Warn, unless nil, is called by the waiting rank after half of it, once a
	// call, with the number of the call and the ranks that have not entered it.
	Warn func(seq uint64, missing []int)
}
