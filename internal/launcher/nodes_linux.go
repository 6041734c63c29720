package launcher

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// limitSilence bounds how long a host may not answer to what was sent to it.
func limitSilence(conn *net.TCPConn) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence/time.Millisecond))
		})
	}
}
