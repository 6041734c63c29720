package transport

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrClosed is the error of an endpoint that is used after Close.
var ErrClosed = errors.New("closed")

// ErrFailed is the error of a wait that ended because the group has failed. Endpoint.Failure
// returns why.
var ErrFailed = errors.New("the group has failed")

// PeerLostError reports that a required rank is gone: it left the group, its worker ended, or
// its process died. PID is 0 for a rank of this process. Host is the name of its host, "" if it is
// this rank's; while ranks join, the text alone has it.
//
// Of a receive from any rank, Left are all ranks that have left, if there are several, and Hosts
// their hosts, by index: "" for that of this rank; nil if the transport connects no nodes.
type PeerLostError struct {
	Rank  int
	PID   int
	Left  []int
	Host  string
	Hosts []string
}

func (e *PeerLostError) Error() string {
	if len(e.Left) > 0 {
		return fmt.Sprintf("peer lost: %s have left the group", placed(e.Left, e.Hosts))
	}

	switch {
	case e.PID != 0 && e.Host != "":
		return fmt.Sprintf("peer lost: rank %d (pid %d, host %s) is gone", e.Rank, e.PID, e.Host)
	case e.PID != 0:
		return fmt.Sprintf("peer lost: rank %d (pid %d) is gone", e.Rank, e.PID)
	case e.Host != "":
		return fmt.Sprintf("peer lost: rank %d (host %s) has left the group", e.Rank, e.Host)
	}
	return fmt.Sprintf("peer lost: rank %d has left the group", e.Rank)
}

// TimeoutError reports that a call waited longer than its timeout. Rank By was the first to do
// so. Missing are the ranks that have not entered call Seq, except those that wait for another one
// of them in an earlier call; or that have not joined the group if Seq is 0.
// Behind are the ranks that have, but did not reach the point that By waited for.
//
// Of a receive from any rank, Left are those of Behind that have left the group. Waiting are the
// ranks that wait for By; Behind has them only if there is no other.
//
// Hosts are the names of the hosts of Missing, or of Behind if there are none, by index: "" for
// that of the rank that gets the error, nil if all are on that one, or while ranks join.
type TimeoutError struct {
	Missing, Behind []int
	Left, Waiting   []int
	By              int
	Seq             uint64
	After           time.Duration
	Hosts           []string
}

func (e *TimeoutError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "timed out after %v", e.After)
	switch {
	case len(e.Missing) > 0 && e.Seq > 0:
		fmt.Fprintf(&b, ": waited for %s, which did not make call %d", placed(e.Missing, e.Hosts), e.Seq)
	case len(e.Missing) > 0:
		fmt.Fprintf(&b, ": waited for %s, which did not join", placed(e.Missing, e.Hosts))
	case len(e.Behind) > 0 && e.Seq > 0:
		fmt.Fprintf(&b, ": rank %d waited for %s inside call %d", e.By, placed(e.Behind, e.Hosts), e.Seq)
	case len(e.Behind) > 0: // for a message, which may be another than that of the error
		fmt.Fprintf(&b, ": rank %d waited for %s", e.By, placed(e.Behind, e.Hosts))
	}

	if len(e.Left) > 0 {
		b.WriteString("; " + RanksText(e.Left) + inflect(e.Left, " has", " have") + " left the group")
	}
	if len(e.Waiting) > 0 {
		fmt.Fprintf(&b, "; %s%s for rank %d", RanksText(e.Waiting), inflect(e.Waiting, " waits", " wait"), e.By)
	}
	if len(e.Left)+len(e.Waiting) == 0 { // otherwise more time is of no use
		b.WriteString(" (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call)")
	}
	return b.String()
}

// placed returns the text of ranks, with the hosts of those that are on other ones.
func placed(ranks []int, hosts []string) string {
	on := make(map[string][]int)
	for i, host := range hosts[:min(len(hosts), len(ranks))] {
		on[host] = append(on[host], ranks[i])
	}
	delete(on, "")

	var texts []string
	for _, host := range slices.Sorted(maps.Keys(on)) {
		text := "host " + host
		if len(on[host]) < len(ranks) {
			text = RanksText(on[host]) + " on " + text
		}
		texts = append(texts, text)
	}
	if texts == nil {
		return RanksText(ranks)
	}
	return RanksText(ranks) + " (" + strings.Join(texts, ", ") + ")"
}

// inflect returns the form of a verb of which ranks are the subject.
func inflect(ranks []int, singular, plural string) string {
	if len(ranks) == 1 {
		return singular
	}
	return plural
}

// Timeout returns true, as the timeout errors of the standard library do.
func (e *TimeoutError) Timeout() bool { return true }

// AbortedError reports that rank By gave up, and why: its worker returned an error or panicked,
// its context was cancelled, or its kernel failed. Across processes Cause is an error with the
// text of the cause; errors.Is and errors.As do not find the cause itself.
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

// MismatchError is returned by Enter if ranks entered one call with different hashes.
// Endpoint.Fingerprint returns what each rank brought, of which package ccl makes its own
// MismatchError, the one that programs get.
type MismatchError struct{ Seq uint64 }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("ranks made different calls as call %d", e.Seq)
}

// OverlapError is returned by Enter if one rank writes memory in the call that another rank
// reads or writes in it. Ranks, in ascending order, brought that memory.
type OverlapError struct {
	Ranks []int
	Seq   uint64
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("%s brought the same memory to call %d", RanksText(e.Ranks), e.Seq)
}

// RejectedError is returned by Enter if Ranks rejected the arguments of call Seq and this rank did
// not.
//
// Why has the reason of each of Ranks, "" if it is no longer kept. Where ranks are processes the
// texts come from shared memory and may contain any characters. Missing are the ranks that have
// neither entered nor rejected the call.
type RejectedError struct {
	Ranks   []int
	Why     []string
	Missing []int
	Seq     uint64
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("%s rejected the arguments of call %d", RanksText(e.Ranks), e.Seq)
}

// NotAvailableError reports that a transport is not for this system, or not for these ranks.
type NotAvailableError struct {
	Transport string // its name
	Reason    string
}

func (e *NotAvailableError) Error() string {
	return fmt.Sprintf("transport %q is not available: %s", e.Transport, e.Reason)
}

// MissingConfigurationError reports what must be set or called first.
type MissingConfigurationError struct {
	Missing []string // variables, keys or calls that supply it
	Message string
}

func (e *MissingConfigurationError) Error() string { return e.Message }

// ProtocolError reports that a peer broke the protocol, for example with a message that no rank
// expects: a defect of a kernel or of a transport, or shared memory that another program has
// written to.
//
// Peer is -1 if no rank is to blame. Methods of an endpoint that return no error, or no error of
// this type, panic with one; see FaultGuard.
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

// AllocationFailedError reports that a transport could not get the memory it needs.
type AllocationFailedError struct {
	RequestedBytes int
	Message        string
}

func (e *AllocationFailedError) Error() string {
	return fmt.Sprintf("allocation of %d bytes failed: %s", e.RequestedBytes, e.Message)
}

// BackendNotAvailableError reports that a transport exists but cannot be used here: the program
// does not link it, or it is not for these ranks, or not for this system.
type BackendNotAvailableError struct {
	Requested string
	Available []string // transports of the program that can connect these ranks
	Reason    string
}

func (e *BackendNotAvailableError) Error() string {
	s := fmt.Sprintf("transport %q is not available: %s", e.Requested, e.Reason)
	if len(e.Available) > 0 {
		s += " (available: " + strings.Join(e.Available, ", ") + ")"
	}
	return s
}

// InvalidBackendError reports the name of a backend, or of a transport, that does not exist.
type InvalidBackendError struct {
	Requested string
	Available []string
	Hint      string // a backend to use instead, or ""
}

func (e *InvalidBackendError) Error() string {
	s := fmt.Sprintf("unknown backend %q (available: %s)", e.Requested, strings.Join(e.Available, ", "))
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// InitializationFailedError reports that a group could not be set up. Nothing of it is left;
// another attempt may succeed.
type InitializationFailedError struct {
	Backend string
	Err     error
}

func (e *InitializationFailedError) Error() string {
	return fmt.Sprintf("initialization of %q failed: %v", e.Backend, e.Err)
}

// Unwrap returns the cause.
func (e *InitializationFailedError) Unwrap() error { return e.Err }
