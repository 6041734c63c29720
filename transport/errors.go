package transport

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrClosed is returned for the use of an endpoint after Close.
var ErrClosed = errors.New("closed")

// ErrFailed is returned by a wait that ended because the group has failed:
// Endpoint.Failure says why.
var ErrFailed = errors.New("the group has failed")

// PeerLostError says that a rank that is needed is gone: it left the group,
// its worker ended or its process died. PID is 0 for a rank of this process.
type PeerLostError struct {
	Rank int
	PID  int
}

func (e *PeerLostError) Error() string {
	if e.PID != 0 {
		return fmt.Sprintf("peer lost: rank %d (pid %d) is gone", e.Rank, e.PID)
	}
	return fmt.Sprintf("peer lost: rank %d has left the group", e.Rank)
}

// TimeoutError says that a call waited longer than its timeout, which rank By was
// the first to do. Missing are the ranks that have not entered call Seq, or not
// joined the group if Seq is 0; Behind are those that have, but did not get to the
// point that By waited for.
type TimeoutError struct {
	Missing, Behind []int
	By              int
	Seq             uint64
	After           time.Duration
}

func (e *TimeoutError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "timed out after %v", e.After)
	if e.Seq > 0 {
		fmt.Fprintf(&b, " in call %d", e.Seq)
	}
	switch {
	case len(e.Missing) > 0 && e.Seq > 0:
		fmt.Fprintf(&b, ": waited for %s, which did not make this call", RanksText(e.Missing))
	case len(e.Missing) > 0:
		fmt.Fprintf(&b, ": waited for %s, which did not join", RanksText(e.Missing))
	case len(e.Behind) > 0:
		fmt.Fprintf(&b, ": rank %d waited for %s inside this call", e.By, RanksText(e.Behind))
	}
	return b.String()
}

// Timeout makes errors of this type look like other timeouts of the standard
// library.
func (e *TimeoutError) Timeout() bool { return true }

// AbortedError says that rank By gave up, and why: its worker returned an error
// or panicked, its context was cancelled, its kernel failed. Across processes
// Cause holds the text of the cause alone.
type AbortedError struct {
	By    int
	Cause error
}

func (e *AbortedError) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("aborted by rank %d", e.By)
	}
	return fmt.Sprintf("aborted by rank %d: %v", e.By, e.Cause)
}

// Unwrap returns the cause.
func (e *AbortedError) Unwrap() error { return e.Cause }

// MismatchError is returned by Enter where ranks entered one call with
// different hashes; Endpoint.Fingerprint holds what each brought.
type MismatchError struct{ Seq uint64 }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("ranks made different calls as call %d", e.Seq)
}

// OverlapError is returned by Enter where one rank writes memory in the call that
// another reads or writes in it: Ranks brought it, in ascending order.
type OverlapError struct {
	Ranks []int
	Seq   uint64
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("%s brought the same memory to call %d", RanksText(e.Ranks), e.Seq)
}

// RefusedError is returned by Enter where Ranks refused call Seq for its
// arguments and this rank did not. Why is the reason that each of Ranks gave, "" where
// it is not kept any more; ranks that share memory with other processes must not trust
// its characters. Missing are the ranks that have done neither yet.
type RefusedError struct {
	Ranks   []int
	Why     []string
	Missing []int
	Seq     uint64
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s refused the arguments of call %d", RanksText(e.Ranks), e.Seq)
}

// NotAvailableError says that a transport does not exist on this system.
type NotAvailableError struct {
	Transport string // its name
	Reason    string
}

func (e *NotAvailableError) Error() string {
	return fmt.Sprintf("transport %q is not available: %s", e.Transport, e.Reason)
}

// ProtocolError says that a peer did something that the protocol rules out, such
// as sending a message that nobody expects: a defect of a kernel or of a
// transport, or memory that ranks share and that something else has written to. Peer is
// -1 where no rank is to blame. Methods of an endpoint that return no error, or none of
// this kind, panic with one; see Guard.
type ProtocolError struct {
	Peer int
	Text string
}

func (e *ProtocolError) Error() string {
	if e.Peer < 0 {
		return "protocol error: " + e.Text
	}
	return fmt.Sprintf("protocol error with rank %d: %s", e.Peer, e.Text)
}

// AllocationFailedError says that a transport could not get the memory it
// needs.
type AllocationFailedError struct {
	RequestedBytes int
	Message        string
}

func (e *AllocationFailedError) Error() string {
	return fmt.Sprintf("allocation of %d bytes failed: %s", e.RequestedBytes, e.Message)
}
