//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// regularOnly makes the opening of a file follow no link and wait for no other end of a pipe.
const regularOnly = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// lock locks a file until it is closed. It returns errLocked if another one has locked it, and
// other errors where files cannot be locked.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
