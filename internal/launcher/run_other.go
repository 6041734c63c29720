//go:build !unix

package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// Signals are those that a launcher passes on: none.
var Signals []os.Signal

// Leftovers returns nothing: there are no jobs.
func Leftovers() []string { return nil }

// Reexecuted does nothing: this system has no launchers.
func Reexecuted(Memory) {}

// Run returns a *RefusedError: this system has no process groups.
func (*Spec) Run(context.Context) (*Outcome, error) {
	return nil, &RefusedError{statusFailed, fmt.Errorf("ranks as processes: %w on %s: start one process, whose ranks are goroutines, with dist.Spawn", errors.ErrUnsupported, runtime.GOOS)}
}

// Run is Run of the job: this system has no restarts either.
func (*Restarts) Run(ctx context.Context, j *Spec) (*Outcome, []Attempt, error) {
	outcome, err := j.Run(ctx)
	return outcome, nil, err
}

// SignalName returns the name of a signal, or "" if it is 0.
func SignalName(s syscall.Signal) string {
	if s == 0 {
		return ""
	}
	return s.String()
}
