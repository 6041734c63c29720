//go:build unix

package launcher

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// endSignals end a job, and userSignals mean what the program makes of them.
var (
	endSignals  = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	userSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
)

// Signals are the signals that a launcher passes on to its ranks.
var Signals = slices.Concat(endSignals, userSignals)

// SignalName returns the name of a signal, such as SIGTERM, or "" if it is 0.
func SignalName(s syscall.Signal) string {
	if s == 0 {
		return ""
	}
	return cmp.Or(unix.SignalName(s), s.String())
}

// signalGroup sends a signal to the process group of a rank, and reports whether it
// has any processes. It ignores numbers up to 1, which mean other processes.
func signalGroup(pid int, s syscall.Signal) bool {
	return pid > 1 && syscall.Kill(-pid, s) == nil
}

// reapGroup waits for dead processes of the group of a rank that have become children of this
// process, as orphans do if it is process 1 of a container. The rank's own process has ended
// before.
func reapGroup(pid int) {
	for pid > 1 {
		if n, err := syscall.Wait4(-pid, nil, syscall.WNOHANG, nil); n <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
