//go:build unix && !linux

package launcher

// askStacks does nothing: only on Linux do ranks that are processes meet, and wait for each other.
func askStacks(int) bool { return false }

// isStopped reports nothing.
func isStopped(int) bool { return false }

// isDead reports nothing: process 1 waits for orphans.
func isDead(int) bool { return false }
