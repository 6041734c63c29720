//go:build unix

package launcher

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// readFrom reads a pipe until all writers have closed it. If its deadline passes, the
// remaining writers do not matter: it reads only what the pipe contains.
func (s *stream) readFrom(pipe *os.File) {
	defer pipe.Close()
	defer s.end()
	chunk := make([]byte, 32<<10)
	for {
		n, err := pipe.Read(chunk)
		s.write(chunk[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		} else if err != nil {
			return
		}
	}

	raw, err := pipe.SyscallConn()
	if err == nil {
		err = pipe.SetReadDeadline(time.Time{})
	}
	for n := 1; n > 0 && err == nil; {
		_ = raw.Read(func(fd uintptr) bool {
			n, err = syscall.Read(int(fd), chunk)
			return true // with or without data
		})
		s.write(chunk[:max(n, 0)])
	}
}
