package ccl

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/library"
	"github.com/goccl/goccl/transport"
)

// Errors of calls that are rejected before any data moves. The group lives on if all ranks reject
// the call.
var (
	// ErrNotImplemented: no kernel does this collective, operation or shape.
	ErrNotImplemented = errors.New("not implemented")
	// ErrInvalidCommunicator: the communicator is nil or was not made by New, or its group has failed
	// before.
	ErrInvalidCommunicator = errors.New("invalid communicator")
	// ErrConcurrentUse: two calls of one rank on one communicator overlap.
	ErrConcurrentUse = errors.New("concurrent use of a communicator")
	// ErrClosed: the communicator was closed.
	ErrClosed = transport.ErrClosed
)

// CollectiveFailedError is the error, in a *CallError, of the call in which a group fails and of
// every later call. Err is the first cause. It is the same on all ranks, except that a rank that
// cancelled or gave up gets its own error.
type CollectiveFailedError struct {
	Operation string // the collective, such as "all_reduce"
	Message   string // the activity of this rank, "" if the call did not start
	Algorithm string // the algorithm's entry in ccl.yaml, "" if none was chosen
	Rank      int    // the rank that returns the error
	Peer      int    // the rank to blame, -1 if none
	Awaited   int    // the rank whose message this rank awaited; -1 if none, or lost outside a circle
	// MPIErrorCode is the code of the MPI library, if a call of it failed on some rank, and
	// otherwise 0. Err has the library's text.
	MPIErrorCode int
	Seq          uint64 // number of the call on its group, from 1; 0 if the rank has made none
	Group        string // name of the group, "" for a job's default group
	// GlobalRanks maps the group's ranks to ranks of the job, or of the first group; nil in the
	// first group. All other ranks of the error are the group's.
	GlobalRanks []int
	// Last are the last calls of the ranks that Err names, as far as this rank knows them.
	Last []LastCall
	// HideRank: the text does not name Rank, since the error that wraps this one does.
	HideRank bool
	Err      error
}

func (e *CollectiveFailedError) Error() string { return e.text(&CallError{}) }

// text returns the text of e with what call knows.
func (e *CollectiveFailedError) text(call *CallError) string { return "ccl: " + e.reason(call) }

// reason is text without the package.
func (e *CollectiveFailedError) reason(call *CallError) string {
	var b strings.Builder
	b.WriteString(callText(e.Operation, call.Label, call.DType, call.Count, e.Algorithm))
	if e.Seq > 0 {
		fmt.Fprintf(&b, ", call %d", e.Seq)
	}

	if at := call.at(); at != "" {
		b.WriteString(" " + at)
	}
	if e.Group != "" {
		fmt.Fprintf(&b, " on group %s", e.Group)
	}

	if !e.HideRank {
		fmt.Fprintf(&b, ", rank %d", e.Rank)
	}
	b.WriteString(": ")
	if e.Message != "" {
		b.WriteString(e.Message + ": ")
	}

	b.WriteString(e.Err.Error())
	e.translate(&b)
	lost, _ := errors.AsType[*transport.PeerLostError](e.Err)
	for _, text := range lastTexts(e.Last, lost != nil && lost.PID == 0) {
		b.WriteString("; " + text)
	}
	b.WriteString(call.hint())
	return b.String()
}

// translate appends the ranks of the job for the ranks that the error names, if they differ.
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
	ranks := []int{e.Peer}
	if !e.HideRank {
		ranks = append(ranks, e.Rank)
	}
	if lost, ok := errors.AsType[*transport.PeerLostError](e.Err); ok {
		ranks = append(append(ranks, lost.Rank), lost.Left...)
	}

	if late, ok := errors.AsType[*transport.TimeoutError](e.Err); ok {
		ranks = append(slices.Concat(ranks, late.Missing, late.Behind, late.Waiting), late.By)
	}
	if aborted, ok := errors.AsType[*transport.AbortedError](e.Err); ok {
		ranks = append(ranks, aborted.By)
	}

	if protocol, ok := errors.AsType[*transport.ProtocolError](e.Err); ok {
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

// MismatchError reports how the ranks of one call differ. It is equal on all ranks. Field is
// one of:
//
//   - "collective", "dtype", "op", "count", "root", "counts", "ranks", "list 0" and so on, or
//     "algorithm"
//   - "key" if they have different ones (WithKey), or if only part of the ranks have one
//   - "buffers" if goroutine ranks brought the same memory to a call that writes it
//   - "arguments" if only some ranks rejected theirs: then each value has an Outcome, and ranks
//     that rejected the call with different errors have different values
type MismatchError struct {
	Field  string
	Values []MismatchValue
}

// buffersField is the Field if goroutine ranks brought the same memory to a call that writes it.
const buffersField = "buffers"

// MismatchValue is one of the values that ranks brought to a call, as text.
type MismatchValue struct {
	Value string
	Ranks []int
	// Outcome is what these ranks did with a call that some ranks rejected, otherwise 0. Value is its
	// text.
	Outcome transport.Outcome
	// Why is the text of the error with which these ranks rejected the call, one line of at most
	// transport.ReasonBytes bytes, or where they have a setting from; "" if it is not known.
	Why string
}

func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ranks disagree on %s:", e.Field)
	for i, v := range e.Values {
		if i > 0 {
			b.WriteByte(';')
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

// KernelPanicError reports that a kernel panicked. The process survives it.
type KernelPanicError struct {
	Kernel string // entry and collective, such as "ring all_reduce"
	Value  any    // the value of the panic
	Stack  []byte
}

func (e *KernelPanicError) Error() string {
	if line := panicLine(e.Stack); line != "" {
		return fmt.Sprintf("kernel %s panicked at %s: %v", e.Kernel, line, e.Value)
	}
	return fmt.Sprintf("kernel %s panicked: %v", e.Kernel, e.Value)
}

// panicLine returns the file and line, as in stack, of the first function below the panic that
// belongs neither to Go, nor to this package, nor to the steps that kernels share, "" if none does.
// stack is a result of debug.Stack.
func panicLine(stack []byte) string {
	_, below, _ := strings.Cut(string(stack), "\npanic(")
	lines := strings.Split(below, "\n")
	for i := 2; i+1 < len(lines); i += 2 { // a function, and its file
		file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		if !library.IsStandard(lines[i], file) && !strings.HasPrefix(lines[i], "github.com/goccl/goccl/ccl.") &&
			!strings.HasPrefix(lines[i], "github.com/goccl/goccl/algorithms/internal/steps.") {
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

// InvalidBufferSizeError reports that the length of a buffer, in elements, is not the one that the
// call needs.
type InvalidBufferSizeError struct {
	Operation string // as in InvalidArgumentError
	Buffer    string // the argument's name, such as "send" or "counts"; see WithTorchNames
	Expected  int
	Actual    int
	OrMore    bool // Expected is the least length
}

func (e *InvalidBufferSizeError) Error() string { return prefix(e.Operation) + e.reason() }

func (e *InvalidBufferSizeError) reason() string {
	text := fmt.Sprintf("%s has %d elements, want %d", e.Buffer, e.Actual, e.Expected)
	if e.OrMore {
		text += " or more"
	}
	return text
}

// InvalidRootError reports that a root is not a rank of the group.
type InvalidRootError struct{ Root, Size int }

func (e *InvalidRootError) Error() string {
	return fmt.Sprintf("root %d is not a rank of a group of %d (0 to %d)", e.Root, e.Size, e.Size-1)
}

// InvalidArgumentError reports an argument that is invalid for a reason without an error type of
// its own, such as buffers that overlap. An operation of another package begins with the name of
// that: "ddp.New".
type InvalidArgumentError struct{ Operation, Message string }

func (e *InvalidArgumentError) Error() string { return prefix(e.Operation) + e.Message }

func (e *InvalidArgumentError) reason() string { return e.Message }

// prefix returns how the text of an error about the arguments of an operation begins.
func prefix(operation string) string {
	if room, name, ok := strings.Cut(operation, "."); ok {
		return room + ": " + name + ": "
	}
	return "ccl: " + operation + ": "
}

// bufferNames are the names of a call's buffers in its errors.
type bufferNames struct{ send, recv string }

func namesOf(coll Collective, opts []CallOption) bufferNames {
	switch {
	case !slices.ContainsFunc(opts, func(o CallOption) bool { return o.torch }):
		return bufferNames{"send", "recv"}
	case coll == CollAllReduce || coll == CollReduce:
		return bufferNames{"tensor", "tensor"}
	}
	return bufferNames{"input", "output"}
}

// overlapError is the error of a call whose buffers overlap, but must be as required.
func overlapError(operation string, names bufferNames, required string) error {
	return &InvalidArgumentError{operation, names.send + " and " + names.recv + " overlap; they must be " + required}
}
