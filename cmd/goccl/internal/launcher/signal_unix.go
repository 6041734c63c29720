//go:build unix

package launcher

import (
	"cmp"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName returns the name of a signal, such as SIGTERM.
func signalName(s syscall.Signal) string { return cmp.Or(unix.SignalName(s), s.String()) }
