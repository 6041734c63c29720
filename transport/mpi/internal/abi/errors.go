package abi

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// ErrFinalized is the error of Init after Finalize: a process initialises MPI once.
var ErrFinalized = errors.New("this process has finalized MPI, and MPI does not start twice in a process: start a new one")

// Error is an error that the library returned.
type Error struct {
	Function string // such as "MPI_Isend"
	// Class is the library's error class: 5 for a communicator and 6 for a rank that does not exist,
	// in all libraries.
	Class int
	Code  int    // the library's code, which can differ between ranks and between runs
	Text  string // the library's words
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (error class %d)", e.Function, e.Text, e.Class)
}

// LibraryCode returns the library's code, for transport.LibraryCode.
func (e *Error) LibraryCode() int { return e.Code }

// notAvailable says why this machine has no library to call.
func notAvailable(format string, args ...any) error {
	return &transport.NotAvailableError{Transport: "mpi", Reason: fmt.Sprintf(format, args...)}
}

// check returns an error if the library grants less than MPI_THREAD_MULTIPLE.
func (l levels) check(provided int32, library string) error {
	if provided >= l.multiple() {
		return nil
	}
	granted := "MPI_THREAD_SINGLE"
	for i, name := range []string{"MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED"} {
		if provided >= l[i+1] {
			granted = name
		}
	}
	return notAvailable("%s grants %s, and goroutines need MPI_THREAD_MULTIPLE: use a library that is built with it", library, granted)
}

// checkSize returns an error if the library counts other ranks than the launcher: it is not the
// launcher's, and takes the process for a job of its own.
func checkSize(counted int, l *Launcher, library string) error {
	if counted == l.Size {
		return nil
	}
	ranks := "ranks"
	if counted == 1 {
		ranks = "rank"
	}
	return notAvailable("%s counts %d %s, and the launcher says %s: the launcher is another MPI's. Start the program with the launcher of that library, "+
		"or name the launcher's library in GOCCL_MPI_LIBRARY", library, counted, ranks, l.From)
}
