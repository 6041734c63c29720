package dist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/transport"
)

// Errors of this package.
var (
	// ErrUnbound: the goroutine has no rank, and the call needs one.
	ErrUnbound = errors.New("this goroutine has no rank")
	// ErrAlreadyInitialized: two calls of InitProcessGroup by one rank without a
	// DestroyProcessGroup in between.
	ErrAlreadyInitialized = errors.New("default process group has been initialized already")
	// ErrNotDeployed: the input of a reduction is nil. The Work of an asynchronous one has
	// *InvalidBufferSizeError alone.
	ErrNotDeployed = errors.New("the tensor is nil")
	// ErrGoexit: a worker ended by runtime.Goexit instead of returning.
	ErrGoexit = errors.New("worker ended by runtime.Goexit and did not return " +
		"(a test's FailNow, Fatal and Skip end their goroutine this way, and so does testify's require)")
)

// ErrNotInitialized says that the process group does not exist yet, or was destroyed.
var ErrNotInitialized = errors.New("default process group has not been initialized")

// Errors of package ccl that calls of this package return.
var (
	ErrNotImplemented      = ccl.ErrNotImplemented
	ErrInvalidCommunicator = ccl.ErrInvalidCommunicator
	ErrConcurrentUse       = ccl.ErrConcurrentUse
	ErrClosed              = ccl.ErrClosed
)

// Error types of packages ccl and ccl/config that calls of this package return;
// docs/reference/errors.md has them in a table. Ranks in them are ranks of the group.
type (
	// CallError tells which call failed: the line of the program, the collective, its size, its
	// label. It wraps the other errors of a call.
	CallError = ccl.CallError
	// CollectiveFailedError is the failure of a group. Fields: Operation, Rank (which returns it),
	// Peer (to blame, or -1), Seq, Group, Last (what the ranks to blame called last), Err (the
	// cause: a *MismatchError, *TimeoutError, *PeerLostError, *AbortedError, *KernelPanicError or
	// *ProtocolError, or the error of a context).
	CollectiveFailedError = ccl.CollectiveFailedError
	// MismatchError shows how the calls of ranks differ. Fields: Field, and Values with Value, Ranks
	// and Why.
	MismatchError = ccl.MismatchError
	// TimeoutError names the ranks that did not come in time. Fields: Missing and Behind (the
	// ranks), Left and Waiting (of a receive from AnySource: those of Behind that have left, and
	// those that wait themselves), By (the rank that waited), Seq, After, Hosts (of ranks on
	// other ones).
	TimeoutError = transport.TimeoutError
	// PeerLostError names a rank that is gone. Fields: Rank, PID (0: a goroutine), Host (if another);
	// Left and Hosts (of a receive from AnySource: all ranks that have left, and where they were).
	PeerLostError = transport.PeerLostError
	// AbortedError names a rank that gave up. Fields: By (that rank), Cause.
	AbortedError = transport.AbortedError
	// KernelPanicError is a panic in a kernel. Fields: Kernel, Value, Stack.
	KernelPanicError = ccl.KernelPanicError
	// ProtocolError reports shared memory that another program has overwritten, or a message that
	// does not fit the call. Fields: Peer (the rank to blame, or -1), Text.
	ProtocolError = transport.ProtocolError
	// UnfinishedError reports calls that had not ended when their group was destroyed.
	UnfinishedError = ccl.UnfinishedError
	// InvalidBufferSizeError reports a length. Fields: Operation, Buffer (the argument), Expected,
	// Actual (elements).
	InvalidBufferSizeError = ccl.InvalidBufferSizeError
	// InvalidRootError reports a rank that a group does not have. Fields: Root, Size.
	InvalidRootError = ccl.InvalidRootError
	// InvalidArgumentError reports another wrong argument. Fields: Operation, Message.
	InvalidArgumentError = ccl.InvalidArgumentError
	// AllocationFailedError reports how much memory could not be allocated.
	AllocationFailedError = transport.AllocationFailedError
	// BackendNotAvailableError reports a transport that cannot connect these ranks. Fields:
	// Requested, Available, Reason.
	BackendNotAvailableError = transport.BackendNotAvailableError
	// InvalidBackendError reports a backend or transport that does not exist. Fields: Requested,
	// Available, Hint.
	InvalidBackendError = transport.InvalidBackendError
	// InitializationFailedError is the error of InitProcessGroup. Fields: Backend, Err (the cause).
	InitializationFailedError = transport.InitializationFailedError
	// MissingConfigurationError reports what must be set or called first. Fields: Missing, Message.
	MissingConfigurationError = transport.MissingConfigurationError
	// ConfigError is a mistake in ccl.yaml, an option or a variable, with file, line and column.
	ConfigError = config.Error
)

// RankError is the failure of a rank's worker: the error it returned, a *PanicError, a
// *StuckError, or ErrGoexit.
type RankError struct {
	Rank int
	Err  error
}

func (e *RankError) Error() string { return fmt.Sprintf("rank %d: %v", e.Rank, e.Err) }

// stack is the stack of the rank's worker if it panicked or is stuck, after an empty line.
func (e *RankError) stack() string {
	switch err := e.Err.(type) { //nolint:errorlint // not another rank's, in a wrapped error
	case *PanicError:
		return "\n\n" + string(err.Stack)
	case *StuckError:
		return "\n\n" + string(err.Stack)
	}
	return ""
}

// Unwrap returns the worker's error.
func (e *RankError) Unwrap() error { return e.Err }

// rankErrors is Spawn's error: the errors of all ranks that failed, the causes first. Its text
// shows errors that differ only in the rank once, with all their ranks, and the stacks of
// workers that panicked or are stuck. Of more than textLines different errors it names
// only the ranks.
type rankErrors []*RankError

const textLines = 8

func (e rankErrors) Error() string {
	var texts, lines []string
	same := map[string]rankErrors{} // by text
	for _, err := range e {
		text := err.Err.Error() + err.stack()
		if same[text] == nil {
			texts = append(texts, text)
		}
		same[text] = append(same[text], err)
	}

	var rest rankErrors
	for i, text := range texts {
		if errs := same[text]; i < textLines {
			lines = append(lines, errs.ranks()+": "+text)
		} else {
			rest = append(rest, errs...)
		}
	}
	if rest != nil {
		lines = append(lines, fmt.Sprintf("(and other errors on %s)", rest.ranks()))
	}
	return strings.Join(lines, "\n")
}

func (e rankErrors) ranks() string {
	ranks := make([]int, len(e))
	for i := range e {
		ranks[i] = e[i].Rank
	}
	slices.Sort(ranks)
	return transport.RanksText(ranks)
}

// Unwrap returns the errors of all ranks.
func (e rankErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i := range e {
		errs[i] = e[i]
	}
	return errs
}

// explained is an error of an operation of this package, in which errors.Is and errors.As find
// others. The operation is "" if the reason names it.
type explained struct {
	operation, reason string
	is                []error
}

func (e *explained) Error() string {
	if e.operation == "" {
		return "dist: " + e.reason
	}
	return "dist: " + e.operation + ": " + e.reason
}

// Reason returns the text of the error without the package and the operation.
func (e *explained) Reason() string  { return e.reason }
func (e *explained) Unwrap() []error { return e.is }

// reasonOnly is an error without the package and the operation in its text.
type reasonOnly struct{ err error }

func (e *reasonOnly) Error() string { return ccl.Reason(e.err) }
func (e *reasonOnly) Unwrap() error { return e.err }

// PanicError reports that the worker of a rank panicked. The process continues. Its text does not
// name the rank, which Spawn and the errors of other ranks put before it.
type PanicError struct {
	Rank  int
	Value any // of the panic
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the worker panicked: %v", e.Value)
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// StuckError reports that Spawn returned without the worker of a rank: its peers timed out
// waiting for it, and after the same time again it had not returned or made a call. Its goroutine
// remains, and its rank has left its groups. Its text does not name the rank, as that of
// PanicError.
type StuckError struct {
	Rank  int
	After time.Duration // the timeout
	Stack []byte        // of the worker
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("the worker is stuck: %v after its peers had timed out waiting for it, it has not returned; its goroutine remains", e.After)
}
