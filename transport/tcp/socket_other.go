//go:build !linux

package tcp

import "net"

// open returns the sockets of connections, by rank, and what waits for them.
func open(rank int, conns []net.Conn) ([]socket, waiter, error) { return openAny(rank, conns) }
