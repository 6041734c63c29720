package ccl

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/transport"
)

// Errors of calls that were refused before anything moved. The group lives on
// if all ranks refuse.
var (
	// ErrNotImplemented: no kernel does this collective, operation or shape.
	ErrNotImplemented = errors.New("not implemented")
	// ErrNotInitialized: there is no process group yet, or no more.
	ErrNotInitialized = errors.New("default process group has not been initialized")
	// ErrInvalidCommunicator: the communicator is nil, or its group has failed.
	ErrInvalidCommunicator = errors.New("invalid communicator")
	// ErrConcurrentUse: two calls of one rank on one communicator overlap.
	ErrConcurrentUse = errors.New("concurrent use of a communicator")
	// ErrClosed: the communicator was closed.
	ErrClosed = transport.ErrClosed
)

// Failures of a group, found by errors.As in a CollectiveFailedError.
type (
	// PeerLostError names a rank that is needed and gone.
	PeerLostError = transport.PeerLostError
	// TimeoutError names the ranks that a call waited for in vain.
	TimeoutError = transport.TimeoutError
	// AbortedError names the rank that gave up, and why.
	AbortedError = transport.AbortedError
	// ProtocolError says what a peer's kernel did that this one's rules out.
	ProtocolError = transport.ProtocolError
	// AllocationFailedError says how much memory could not be had.
	AllocationFailedError = transport.AllocationFailedError
)

// CollectiveFailedError is returned by every call on a group that failed, from
// the one in which it did: Err is the first cause, the same on all ranks but
// the one that cancelled or gave up, which gets its own error.
type CollectiveFailedError struct {
	Operation string // the collective, such as "all_reduce"
	Message   string // what this rank was doing, "" if the call did not start
	Algorithm string // the algorithm's entry in ccl.yaml, "" if none was chosen
	Rank      int    // the rank that returns the error
	Peer      int    // the rank to blame, -1 if none
	Seq       uint64 // number of the call on its group, from 1; 0 if the rank has made none
	Group     string // name of the group, "" for a job's default group
	// GlobalRanks are the ranks of the job, or of the first group, that the group's ranks
	// are; nil in the first group. All other ranks of the error are the group's.
	GlobalRanks []int
	Err         error
}

func (e *CollectiveFailedError) Error() string {
	var b strings.Builder
	b.WriteString("ccl: ")
	b.WriteString(e.Operation)
	if e.Algorithm != "" {
		b.WriteString(" by ")
		b.WriteString(e.Algorithm)
	}
	if e.Seq > 0 {
		fmt.Fprintf(&b, ", call %d", e.Seq)
	}
	if e.Group != "" {
		fmt.Fprintf(&b, " on group %s", e.Group)
	}
	fmt.Fprintf(&b, ", rank %d: ", e.Rank)
	if e.Message != "" {
		b.WriteString(e.Message)
		b.WriteString(": ")
	}
	b.WriteString(e.Err.Error())
	e.translate(&b)
	return b.String()
}

// translate says which ranks of the job those are that the error names, where they have
// another number there.
func (e *CollectiveFailedError) translate(b *strings.Builder) {
	named := e.ranks()
	slices.Sort(named)
	separator := " (of the job: "
	for _, r := range slices.Compact(named) {
		if r >= 0 && r < len(e.GlobalRanks) && e.GlobalRanks[r] != r {
			fmt.Fprintf(b, "%srank %d is %d", separator, r, e.GlobalRanks[r])
			separator = ", "
		}
	}
	if separator == ", " {
		b.WriteByte(')')
	}
}

// ranks returns the ranks that the error names.
func (e *CollectiveFailedError) ranks() []int {
	ranks := []int{e.Rank, e.Peer}
	if lost, ok := errors.AsType[*PeerLostError](e.Err); ok {
		ranks = append(ranks, lost.Rank)
	}
	if late, ok := errors.AsType[*TimeoutError](e.Err); ok {
		ranks = append(append(append(ranks, late.Missing...), late.Behind...), late.By)
	}
	if aborted, ok := errors.AsType[*AbortedError](e.Err); ok {
		ranks = append(ranks, aborted.By)
	}
	if protocol, ok := errors.AsType[*ProtocolError](e.Err); ok {
		ranks = append(ranks, protocol.Peer)
	}
	if mismatch, ok := errors.AsType[*MismatchError](e.Err); ok {
		for _, v := range mismatch.Values {
			ranks = append(ranks, v.Ranks...)
		}
	}
	return ranks
}

// Unwrap returns the cause.
func (e *CollectiveFailedError) Unwrap() error { return e.Err }

// MismatchError says in which respect the ranks of one call differ. Field is
// "collective", "dtype", "op", "count", "root", "counts", "algorithm", "buffers" where
// goroutine ranks brought the same memory to a call that writes it, or "arguments" where
// some ranks refused theirs: then the values are "refused", "accepted", and "not there
// yet" for the ranks that had not come to the call when its group failed; ranks that
// refused with different errors have a value each. It is equal on all ranks.
type MismatchError struct {
	Field  string
	Values []MismatchValue
}

// buffersField: goroutine ranks brought the same memory to a call that writes it.
const buffersField = "buffers"

// MismatchValue is one of the values that ranks brought to a call. Where it is "refused",
// Why is the text of the error that the calls of these ranks returned: one line of at most
// transport.ReasonBytes bytes, "" if it is not known.
type MismatchValue struct {
	Value string
	Ranks []int
	Why   string
}

func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ranks disagree on %s:", e.Field)
	for i, v := range e.Values {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s on %s", v.Value, transport.RanksText(v.Ranks))
		if v.Why != "" {
			fmt.Fprintf(&b, " (%s)", v.Why)
		}
	}
	if e.Field == buffersField {
		b.WriteString("; a buffer that a call writes must belong to one rank alone")
	}
	return b.String()
}

// KernelPanicError says that a kernel panicked; the process survives it.
type KernelPanicError struct {
	Kernel string // entry and collective, such as "ring all_reduce"
	Value  any    // what it panicked with
	Stack  []byte
}

func (e *KernelPanicError) Error() string {
	if place := panicPlace(e.Stack); place != "" {
		return fmt.Sprintf("kernel %s panicked at %s: %v", e.Kernel, place, e.Value)
	}
	return fmt.Sprintf("kernel %s panicked: %v", e.Kernel, e.Value)
}

// panicPlace returns file and line of the first function below the panic that
// belongs neither to the Go runtime nor to this package, as debug.Stack writes them;
// "" if there is none.
func panicPlace(stack []byte) string {
	_, below, _ := strings.Cut(string(stack), "\npanic(")
	lines := strings.Split(below, "\n")
	for i := 2; i+1 < len(lines); i += 2 { // a function, and its file
		if !strings.HasPrefix(lines[i], "runtime.") && !strings.HasPrefix(lines[i], "github.com/goccl/goccl/ccl.") {
			file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
			return path.Base(filepath.ToSlash(file))
		}
	}
	return ""
}

// Unwrap returns the value of the panic if it is an error.
func (e *KernelPanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// InvalidBufferSizeError says that a buffer's length, in elements, is not what
// the call needs.
type InvalidBufferSizeError struct {
	Operation string
	Buffer    string // which one: "send", "recv", "counts", "displs"
	Expected  int    // for recv of an all-gather: at least so many
	Actual    int
}

func (e *InvalidBufferSizeError) Error() string {
	return fmt.Sprintf("ccl: %s: %s has %d elements, want %d", e.Operation, e.Buffer, e.Actual, e.Expected)
}

// InvalidRootError says that a root is not a rank of the group.
type InvalidRootError struct{ Root, Size int }

func (e *InvalidRootError) Error() string {
	return fmt.Sprintf("ccl: root %d is not a rank of a group of %d (0 to %d)", e.Root, e.Size, e.Size-1)
}

// InvalidArgumentError says what is wrong with an argument that has no error
// type of its own, such as buffers that overlap.
type InvalidArgumentError struct{ Operation, Message string }

func (e *InvalidArgumentError) Error() string {
	return fmt.Sprintf("ccl: %s: %s", e.Operation, e.Message)
}

// Errors that come before there is a communicator.

// BackendNotAvailableError says that a transport exists but cannot be used here.
type BackendNotAvailableError struct {
	Requested string
	Available []string
	Reason    string
}

func (e *BackendNotAvailableError) Error() string {
	return fmt.Sprintf("transport %q is not available: %s (available: %s)",
		e.Requested, e.Reason, strings.Join(e.Available, ", "))
}

// InvalidBackendError says that there is no backend of that name.
type InvalidBackendError struct {
	Requested string
	Available []string
	Hint      string // what to use instead, or ""
}

func (e *InvalidBackendError) Error() string {
	s := fmt.Sprintf("unknown backend %q (available: %s)", e.Requested, strings.Join(e.Available, ", "))
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// InitializationFailedError says that a group could not be set up; nothing of it
// is left, and a corrected second attempt works.
type InitializationFailedError struct {
	Backend string
	Err     error
}

func (e *InitializationFailedError) Error() string {
	return fmt.Sprintf("initialization of %q failed: %v", e.Backend, e.Err)
}

// Unwrap returns the cause.
func (e *InitializationFailedError) Unwrap() error { return e.Err }

// MissingConfigurationError says what has to be set or called first.
type MissingConfigurationError struct {
	Missing []string // variables, keys or calls that would settle it
	Message string
}

func (e *MissingConfigurationError) Error() string { return e.Message }
