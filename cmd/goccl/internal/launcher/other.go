//go:build !unix

package launcher

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// Reexecuted does nothing: this system has no launchers.
func Reexecuted() {}

// Run returns a *RefusedError: this system has no process groups.
func (j *Job) Run() error {
	return &RefusedError{statusFailed, fmt.Errorf("goccl run: %w on %s: start one process, whose ranks are goroutines, with dist.Spawn", errors.ErrUnsupported, runtime.GOOS)}
}

func signalName(s syscall.Signal) string { return s.String() }
