//go:build unix

package launcher

import "syscall"

// signalGroup sends a signal to the process group of a rank, and reports whether it
// has any processes. It ignores numbers up to 1, which mean other processes.
func signalGroup(pid int, s syscall.Signal) bool {
	return pid > 1 && syscall.Kill(-pid, s) == nil
}
