//go:build unix

package launcher

import "syscall"

// signalGroup sends a signal to the process group of a rank, and reports whether it
// has any processes. A group of number 1 or less would be all processes, or one's own.
func signalGroup(pid int, s syscall.Signal) bool {
	return pid > 1 && syscall.Kill(-pid, s) == nil
}
