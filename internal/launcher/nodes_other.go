//go:build unix && !linux

package launcher

import "net"

// watchHost makes a connection end when the other host has been silent for too long, unless
// something was sent to it.
func watchHost(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: silence / 5, Interval: silence / 5, Count: 4})
}
