package cores

import (
	"errors"

	"golang.org/x/sys/unix"
)

// take takes the lock of a name, or reports that another job holds it. The lock is an abstract
// Unix socket: no other socket of the network namespace is bound to that name until it is
// closed. If the system does not allow it, take returns noLock.
func take(name string) (l lock, held bool) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return noLock, false
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err != nil {
		_ = unix.Close(fd)
		return noLock, errors.Is(err, unix.EADDRINUSE)
	}
	return lock(fd), false
}

func (l lock) release() {
	if l != noLock {
		_ = unix.Close(int(l))
	}
}
