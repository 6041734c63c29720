package launcher

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"
)

// MaxRanks is the largest number of ranks, which transport shm has too.
const MaxRanks = 1 << 16

// Spec is a program that runs as several ranks.
type Spec struct {
	Ranks   int           // from 1 to MaxRanks
	Program string        // its file; see Find
	Args    []string      // starting with its name
	Grace   time.Duration // between SIGTERM and SIGKILL
	Pin     Pinning       // whether every rank runs on its own cores; Linux only

	// Environment is the environment of all ranks, like os.Environ, without the rank's variables.
	// Those of another launcher are removed.
	Environment []string
	// Variables, as in Environment, override it and are never removed.
	Variables []string
	// Stdin is the standard input of rank 0.
	Stdin *os.File
	// Stdout and Stderr receive the ranks' output, line by line.
	Stdout, Stderr io.Writer
	// NoPrefix omits the rank from the lines.
	NoPrefix bool
	// Timestamps starts each line with the time at which it came.
	Timestamps bool
	// Quiet omits the output of all ranks except rank 0.
	Quiet bool
	// Files get the ranks' output.
	Files Files
	// Flight, unless empty, is the directory for the flight recorders of the ranks if the job fails.
	Flight string
	// Nodes is this node among those of the job; Ranks are those of this node.
	Nodes Nodes
	// Memory is the memory that the ranks share.
	Memory Memory
	// Signals are the signals that the launcher receives, of those in Signals. A nil channel
	// never receives any.
	Signals <-chan os.Signal
	// Warn, if not nil, is called with what the user should know while the job runs, also
	// concurrently.
	Warn func(Warning)
	// OwnsChildren: this program starts no other processes. On Linux, orphans of the ranks that become
	// its children are then waited for while the job runs.
	OwnsChildren bool
}

// Files are files for the output of ranks.
type Files struct {
	// Directory, unless empty, gets new files of each rank, rank-0.out and rank-0.err.
	Directory string
	// Beside: Stdout and Stderr get the output as well. Then output that cannot be written is a
	// Warning instead of an error.
	Beside bool
	// Bytes, unless 0, is the size at which a file becomes rank-0.out.1, and a new one follows. Few of
	// them remain.
	Bytes int64
}

// Warning is a remark on a job that runs.
type Warning struct {
	Job     string // its name
	Restart int    // how often it had started before
	Rank    int    // that it is about, or -1
	Text    string
}

// Restarts is how often a job that fails starts anew, all its ranks. On nodes other than the first,
// Max counts the losses of node 0; other failures are restarted as node 0 says.
type Restarts struct {
	Max    int           // failures that are followed by a restart
	Window time.Duration // without a failure, after which they are counted anew; 0: never
	// Notice, if not nil, is called before a restart, with its number from 1 and the time until then.
	Notice func(failed Attempt, restart int, pause time.Duration)
}

// Attempt is a start of a job that has failed.
type Attempt struct {
	Outcome *Outcome
	Err     error
}

// Pinning is whether every rank of a job runs on its own cores.
type Pinning int

// The kinds of pinning. By default ranks are pinned if there are several and package cores finds
// enough cores.
const (
	PinDefault Pinning = iota
	PinOn              // or the job does not start
	PinOff
)

// Exit statuses of launchers and shells.
const (
	statusFailed        = 1
	statusUsage         = 2
	statusCrash         = 2 // of a Go program that panics
	statusNotExecutable = 126
	statusNotFound      = 127
	statusSignal        = 128 // plus the signal's number
)

// StatusUnknown is the exit status of a rank for which another part of this program has waited.
const StatusUnknown = -1

// Outcome is how a job ended whose ranks were started.
type Outcome struct {
	Job     string // its name
	Restart int    // how often it had started before
	Started time.Time
	Took    time.Duration
	Ranks   []Rank
	Warning string // of a job that did not fail, or ""
}

// PinError is the reason why the ranks cannot have cores of their own although PinOn asks for it.
type PinError struct{ Err error }

func (e *PinError) Error() string {
	return e.Err.Error() + ": start fewer ranks, or let them share cores"
}
func (e *PinError) Unwrap() error { return e.Err }

// RefusedError is the reason why a job could not start.
type RefusedError struct {
	Status int // exit status for the program
	Err    error
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// ExitCode returns the exit status for the program.
func (e *RefusedError) ExitCode() int { return e.Status }

// Find returns the path of a program, as a shell finds it. If it does not exist or
// cannot be executed, the error is a *RefusedError with a shell's status.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot): // "." in PATH is intended
		return path, nil
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		here := "./" + program
		if _, err := exec.LookPath(here); err == nil && !strings.Contains(program, "/") {
			return "", &RefusedError{statusNotFound, fmt.Errorf("%s: there is no such program in PATH (did you mean %s?)", program, here)}
		}
		return "", &RefusedError{statusNotFound, fmt.Errorf("%s: there is no such program", program)}
	}
	return "", &RefusedError{statusNotExecutable, fmt.Errorf("%s cannot be executed: %w", program, errors.Unwrap(err))}
}
