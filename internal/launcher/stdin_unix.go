//go:build unix

package launcher

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// standardInput returns the input of rank 0, which the caller closes after it is passed on.
// A terminal cannot be passed on: it stops processes that read it outside of its
// foreground group, which is the launcher's.
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

// feed forwards the terminal's input until it ends or the rank stops reading.
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

// describeInput says that nobody could type what the ranks to blame may have waited for; "" if that
// is no reason.
func (l *launcher) describeInput(blamed []int) string {
	if slices.Contains(blamed, 0) && l.Stdin != nil && term.IsTerminal(int(l.Stdin.Fd())) && !inForeground(l.Stdin) {
		return "the job was in the background, where it has no standard input"
	}
	return ""
}

func inForeground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}
