package shm

import "testing"

// If the kernel cannot tell whether a lock is held, its rank does not count as dead.
func TestLockThatCannotBeAsked(t *testing.T) {
	if !isLocked(-1, 0, 1) {
		t.Error("a lock of a file that cannot be asked is not held")
	}
}
