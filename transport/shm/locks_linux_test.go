package shm

import "testing"

// Where the kernel does not say whether a lock is held, nobody is taken for dead.
func TestLockThatCannotBeAsked(t *testing.T) {
	if !locked(-1, 0, 1) {
		t.Error("a lock of a file that cannot be asked is not held")
	}
}
