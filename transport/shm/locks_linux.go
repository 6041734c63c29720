package shm

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Rank r holds a write lock on byte r of the segment's file for as long as it lives. A process
// that removes a leftover locks byte removalLock meanwhile. A process that writes the reason why
// the ranks cannot join locks byte failureLock.
//
// These are locks of open file descriptions. The kernel releases a lock when the last copy of
// the descriptor is closed, in particular when the process dies, unless memory is mapped through
// the description (see mapFile). Locks are visible across pid namespaces. Two descriptions of one
// process exclude each other like two processes.
const (
	removalLock = maxRanks + iota
	failureLock
)

// tryLock takes the lock on a byte. It returns false if another description holds it.
func tryLock(fd, at int) (bool, error) {
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, writeLock(at, 1))
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// isLocked reports whether another description holds a lock on any of n bytes. If the kernel
// returns an error, isLocked returns true: a rank counts as dead only if that is certain.
func isLocked(fd, at, n int) bool {
	l := writeLock(at, n)
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, l) != nil || l.Type != unix.F_UNLCK
}

func writeLock(at, n int) *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET, Start: int64(at), Len: int64(n)}
}
