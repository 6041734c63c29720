//go:build !unix

package launcher

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// Reexecuted does nothing where there are no launchers.
func Reexecuted() {}

// Run returns a *RefusedError: this system has no process groups to end a job by.
func (j *Job) Run() error {
	return &RefusedError{statusFailed, fmt.Errorf("goccl run: %w on %s: start one process, whose ranks are goroutines, with dist.Spawn", errors.ErrUnsupported, runtime.GOOS)}
}

func signalName(s syscall.Signal) string { return s.String() }
