//go:build unix

package launcher

import (
	"cmp"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName is SIGTERM, and what the system says of those that have no name.
func signalName(s syscall.Signal) string { return cmp.Or(unix.SignalName(s), s.String()) }
