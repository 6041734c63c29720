package transport

import (
	"errors"
	"time"

	"github.com/goccl/goccl/internal/failure"
)

// Failure is the first cause of a group's end, in the form in which it reaches every rank,
// also in other processes.
type Failure struct {
	Kind FailureKind
	By   int    // the rank that recorded it
	Seq  uint64 // the call in which it did; 0 outside of calls
	// Ranks are the ranks that the failure is about: the one that was lost, those that are
	// missing, those that rejected. More than 64 are cut.
	Ranks []int
	// Missing are the ranks that had neither rejected nor entered a call that others had
	// rejected. More than 64 are cut.
	Missing []int
	PID     int           // of the process that was lost; 0 if the rank is a goroutine
	After   time.Duration // of a timeout
	Code    int           // of the call of the transport's library that failed; 0 if none did
	Text    string        // the event in words; at least its first TextBytes bytes are kept
	// Reason is why By rejected a call, if it gave up because of that; otherwise "". At least its
	// first ReasonBytes bytes are kept.
	Reason string
	// Cause is the error itself. It does not leave the process.
	Cause error
}

// LibraryCode returns the code with which a call of a transport's library failed, if err is about
// one, and otherwise 0. Such an error has a method LibraryCode.
func LibraryCode(err error) int {
	if e, ok := errors.AsType[interface {
		error
		LibraryCode() int
	}](err); ok {
		return e.LibraryCode()
	}
	return 0
}

// TextBytes is how many bytes of a failure's Text reach the ranks of other processes, at least.
const TextBytes = 700

// FailureKind classifies failures. Its texts, such as "peer_lost", stand in the reports of ranks.
type FailureKind = failure.Kind

const (
	// FailureMismatch: the ranks made different calls. The fingerprints of call Seq show how
	// they differ.
	FailureMismatch = failure.Mismatch
	// FailureRejected: Ranks rejected call Seq, others did not.
	FailureRejected = failure.Rejected
	// FailurePeerLost: Ranks[0] is gone.
	FailurePeerLost = failure.PeerLost
	// FailureTimeout: Ranks did not enter call Seq in time.
	FailureTimeout = failure.Timeout
	// FailureStuck: Ranks entered call Seq, but did not progress inside it in time.
	FailureStuck = failure.Stuck
	// FailureAborted: rank By gave up.
	FailureAborted = failure.Aborted
	// FailureOverlap: Ranks brought the same memory to call Seq, which writes it.
	FailureOverlap = failure.Overlap
)

// Outcome is what a rank did with a call that some ranks rejected.
type Outcome uint8

const (
	// OutcomeRejected: the rank rejected the arguments that it was given.
	OutcomeRejected Outcome = iota + 1
	// OutcomeAccepted: the rank entered the call.
	OutcomeAccepted
	// OutcomeAbsent: the rank had not made the call when the group failed.
	OutcomeAbsent
)

// String returns "rejected", "accepted" or "not there yet".
func (o Outcome) String() string {
	return [...]string{"", "rejected", "accepted", "not there yet"}[min(o, OutcomeAbsent)]
}
