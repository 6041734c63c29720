//go:build unix && !linux

package launcher

import (
	"syscall"
	"time"
)

// signalHandlers sends a signal to a group. Which processes handle it is not known.
func signalHandlers(group int, s syscall.Signal) (asked, others []int) {
	signalGroup(group, s)
	return nil, nil
}

// askStacks does nothing: only on Linux do ranks that are processes meet, and wait for each other.
func askStacks(int) bool { return false }

// reapOrphans does nothing: process 1 waits for orphans.
func (*launcher) reapOrphans() {}

// processesOf lists nothing.
func processesOf(int) []int { return nil }

// isStopped reports nothing.
func isStopped(int) bool { return false }

// isDead reports nothing: process 1 waits for orphans.
func isDead(int) bool { return false }

// isRunning reports whether a process exists.
func isRunning(pid int) bool { return syscall.Kill(pid, 0) == nil }

// awaitEnd waits for nothing, and knows no limit.
func awaitEnd(int) time.Duration { return 0 }
