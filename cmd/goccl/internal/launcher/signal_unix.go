//go:build unix

package launcher

import (
	"cmp"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName returns the name of a signal, such as SIGTERM.
func signalName(s syscall.Signal) string { return cmp.Or(unix.SignalName(s), s.String()) }

// signalGroup sends a signal to the process group of a rank, and reports whether it
// has any processes. It ignores numbers up to 1, which mean other processes.
func signalGroup(pid int, s syscall.Signal) bool {
	return pid > 1 && syscall.Kill(-pid, s) == nil
}
