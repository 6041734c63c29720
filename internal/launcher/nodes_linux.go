package launcher

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// watchHost makes a connection end when the other host has been silent for too long. The hosts'
// kernels answer each other: a launcher that is stopped is not dead.
func watchHost(conn net.Conn) {
	tcp := conn.(*net.TCPConn)
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: silence / 5, Interval: silence / 5, Count: 4})
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence/time.Millisecond))
		})
	}
}
