package launcher

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Job is a program that runs as several ranks.
type Job struct {
	Ranks   int           // how many, at least 1
	Program string        // its file; see Find
	Args    []string      // its arguments, from its name on
	Grace   time.Duration // between SIGTERM and SIGKILL
	Pin     bool          // every rank gets a share of the cores to itself; on Linux only

	// Environment is what all ranks get, like os.Environ, before each gets its rank.
	Environment []string
	// Stdin is the standard input of rank 0; the others have none.
	Stdin *os.File
	// Stdout and Stderr get what the ranks write, line by line.
	Stdout, Stderr io.Writer
	// NoPrefix leaves out which rank has written a line.
	NoPrefix bool
	// Quiet leaves out what all ranks but rank 0 write.
	Quiet bool
	// Directory, unless empty, takes the place of Stdout and Stderr: each rank writes
	// to two files of its own there, rank-0.out and rank-0.err, which must not exist.
	Directory string
	// Signals are those that the launcher gets, of the kinds in Signals. A nil channel
	// is one that never gets any.
	Signals <-chan os.Signal
}

// Signals are those that a launcher hands on to its ranks.
var Signals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// Exit statuses of launchers and shells.
const (
	statusFailed        = 1
	statusUsage         = 2
	statusCrash         = 2 // of a Go program that panics
	statusNotExecutable = 126
	statusNotFound      = 127
	statusSignal        = 128 // and the signal's number
)

// A RefusedError says why a job could not begin.
type RefusedError struct {
	Status int // for the program to exit with
	Err    error
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// ExitCode returns the status for the program to exit with.
func (e *RefusedError) ExitCode() int { return e.Status }

// Find returns the file of a program, found as a shell does. If there is none, or if
// it cannot be executed, that is a *RefusedError with a shell's status.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot): // who has "." in PATH means it
		return path, nil
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return "", &RefusedError{statusNotFound, fmt.Errorf("%s: there is no such program", program)}
	}
	return "", &RefusedError{statusNotExecutable, fmt.Errorf("%s cannot be executed: %w", program, errors.Unwrap(err))}
}
