package shm

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Rank r holds a write lock on byte r of the segment's file for as long as it lives;
// a process that removes a file left behind holds one on byte reaping while it does, and
// one that writes down why the ranks do not come together holds one on byte telling.
//
// They are locks of open file descriptions: the kernel releases them when the last
// copy of the descriptor is closed, so in particular when the process dies, and
// shows them across pid namespaces. Two opens of one process exclude each other
// like those of two processes.
const (
	reaping = maxRanks + iota
	telling
)

// tryLock takes the lock on a byte; false: somebody else holds it.
func tryLock(fd, at int) (bool, error) {
	err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, writeLock(at, 1))
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// locked reports whether others hold locks on any of n bytes. Where the kernel does not
// say, they do: a rank is dead, and a file left behind, only if that is known.
func locked(fd, at, n int) bool {
	l := writeLock(at, n)
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, l) != nil || l.Type != unix.F_UNLCK
}

func writeLock(at, n int) *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET, Start: int64(at), Len: int64(n)}
}
