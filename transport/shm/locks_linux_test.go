package shm

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// If the kernel cannot tell whether a lock is held, its rank does not count as dead.
func TestLockThatCannotBeAsked(t *testing.T) {
	if !isLocked(-1, 0, 1) {
		t.Error("a lock of a file that cannot be asked is not held")
	}
}

// A rank's lock is free when its descriptor is closed, though its memory is mapped: the memory of a
// killed process may stay for a while when the process has ended.
func TestMappingHoldsNoLock(t *testing.T) {
	useOwnDirectory(t)
	ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
	require.NoError(t, err)
	s := ep.(*mapped).segment
	records, err := ep.(*mapped).Records()
	require.NoError(t, err)
	other, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", s.fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	require.NoError(t, err)

	require.True(t, isLocked(other, 0, 1))
	require.NoError(t, unix.Close(s.fd))
	require.False(t, isLocked(other, 0, 1))
	s.fd = other // which closes with the segment
	require.NoError(t, errors.Join(records.Free(), ep.Close(), ep.Free()))
}
