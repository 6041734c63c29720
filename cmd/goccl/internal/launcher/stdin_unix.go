//go:build unix

package launcher

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// standardInput returns what rank 0 reads, to be closed once it has it. A terminal
// cannot be given away: it stops who reads it from outside of its foreground group,
// which is the launcher's.
func standardInput(from *os.File) (*os.File, error) {
	if from == nil {
		return os.Open(os.DevNull)
	}
	if !term.IsTerminal(int(from.Fd())) {
		fd, err := unix.FcntlInt(from.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		return os.NewFile(uintptr(fd), from.Name()), err
	}
	r, w, err := os.Pipe()
	if err == nil {
		go feed(w, from)
	}
	return r, err
}

// feed passes on what is typed, until its end or until nobody wants it.
func feed(to, terminal *os.File) {
	defer to.Close()
	typed := make([]byte, 4096)
	for {
		for !inForeground(terminal) { // reading would stop this process, too
			time.Sleep(100 * time.Millisecond)
		}
		n, err := terminal.Read(typed)
		if _, failed := to.Write(typed[:n]); failed != nil || err != nil {
			return
		}
	}
}

func inForeground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
