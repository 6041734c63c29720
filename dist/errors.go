package dist

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// Errors of this package.
var (
	// ErrUnbound: the goroutine has no rank, and the call needs one.
	ErrUnbound = errors.New("this goroutine has no rank")
	// ErrAlreadyInitialized: two calls of InitProcessGroup by one rank without a
	// DestroyProcessGroup in between.
	ErrAlreadyInitialized = errors.New("default process group has been initialized already")
	// ErrNotDeployed: the tensor of a reduction is nil.
	ErrNotDeployed = errors.New("tensor is not deployed")
	// ErrGoexit: a worker ended by runtime.Goexit instead of returning.
	ErrGoexit = errors.New("worker ended by runtime.Goexit and did not return " +
		"(FailNow, Fatal and Skip of a test end their goroutine so, and testify's require with them)")
)

// Errors of package ccl that calls of this package return.
var (
	ErrNotInitialized      = ccl.ErrNotInitialized
	ErrNotImplemented      = ccl.ErrNotImplemented
	ErrInvalidCommunicator = ccl.ErrInvalidCommunicator
	ErrConcurrentUse       = ccl.ErrConcurrentUse
	ErrClosed              = ccl.ErrClosed
)

// Error types of package ccl that calls of this package return.
type (
	CollectiveFailedError     = ccl.CollectiveFailedError
	MismatchError             = ccl.MismatchError
	TimeoutError              = ccl.TimeoutError
	PeerLostError             = ccl.PeerLostError
	AbortedError              = ccl.AbortedError
	KernelPanicError          = ccl.KernelPanicError
	InvalidBufferSizeError    = ccl.InvalidBufferSizeError
	InvalidRootError          = ccl.InvalidRootError
	InvalidArgumentError      = ccl.InvalidArgumentError
	AllocationFailedError     = ccl.AllocationFailedError
	BackendNotAvailableError  = ccl.BackendNotAvailableError
	InvalidBackendError       = ccl.InvalidBackendError
	InitializationFailedError = ccl.InitializationFailedError
	MissingConfigurationError = ccl.MissingConfigurationError
	ConfigError               = ccl.ConfigError
)

// RankError says how the worker of a rank ended: with the error it returned,
// with a *PanicError, or with ErrGoexit.
type RankError struct {
	Rank int
	Err  error
}

// Error shows the stack as well if it was the worker of this rank that
// panicked.
func (e *RankError) Error() string {
	s := fmt.Sprintf("rank %d: %v", e.Rank, e.Err)
	if p, ok := e.Err.(*PanicError); ok {
		s += "\n\n" + string(p.Stack)
	}
	return s
}

// Unwrap returns the worker's error.
func (e *RankError) Unwrap() error { return e.Err }

// PanicError says that the worker of a rank panicked; the process survives it.
type PanicError struct {
	Rank  int
	Value any // what it panicked with
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the worker of rank %d panicked: %v", e.Rank, e.Value)
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
