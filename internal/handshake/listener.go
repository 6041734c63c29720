package handshake

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxPending is how many connections may be in a handshake at the same time.
const maxPending = 256

// Listener accepts connections of processes that know a secret.
type Listener struct {
	listener net.Listener
	identity Identity
	handle   func(net.Conn, Opening)
	running  sync.WaitGroup // the goroutines that accept, or make a handshake

	mu        sync.Mutex
	closed    bool
	pending   []pending // in a handshake, the oldest first
	strangers int       // connections whose handshake has failed
	last      string    // the latest of these, and why
}

// pending is a connection in its handshake, and the host from which it comes.
type pending struct {
	net.Conn
	host netip.Prefix
}

// hostOf returns the other host of a connection: its address, or of IPv6 that of its network, in
// which a host may have any.
func hostOf(conn net.Conn) netip.Prefix {
	remote, _ := conn.RemoteAddr().(*net.TCPAddr)
	address, bits := remote.AddrPort().Addr().Unmap(), 64
	if address.Is4() {
		bits = 32
	}
	host, _ := address.Prefix(bits) // all that are none count as one
	return host
}

// Serve accepts connections from l until Close. Each one that has made the handshake is given to
// handle, which does not wait, and belongs to it.
func Serve(l net.Listener, id Identity, handle func(net.Conn, Opening)) *Listener {
	s := &Listener{listener: l, identity: id, handle: handle}
	s.running.Go(s.acceptAll)
	return s
}

// Addr returns the address at which it listens.
func (s *Listener) Addr() net.Addr { return s.listener.Addr() }

// Strangers describes the connections whose handshake has failed, as a part of a message; "" if
// there were none.
func (s *Listener) Strangers() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.strangers {
	case 0:
		return ""
	case 1:
		return "a connection was refused: " + s.last
	}
	return fmt.Sprintf("%d connections were refused, the last: %s", s.strangers, s.last)
}

// Close ends it. Connections that handle got stay open, and handle is not called any more.
func (s *Listener) Close() error {
	s.mu.Lock()
	s.closed = true
	err := s.listener.Close()
	for _, conn := range s.pending {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	return err
}

// acceptPause is how long it waits after an error of accept, such as that of too many open files.
const acceptPause = 5 * time.Millisecond

// acceptAll accepts connections until Close.
func (s *Listener) acceptAll() {
	for {
		conn, err := s.listener.Accept()

		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
		case s.admit(conn):
			s.running.Go(func() { s.shake(conn) })
		default:
			_ = conn.Close()
		}
	}
}

// admit notes a connection that begins its handshake. If there are too many it drops the oldest one
// of the host that has most of them, so that one host does not crowd out others.
func (s *Listener) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.pending = append(s.pending, pending{conn, hostOf(conn)})
	if len(s.pending) > maxPending {
		i := s.indexCrowding()
		_ = s.pending[i].Close()
		s.pending = slices.Delete(s.pending, i, i+1)
	}
	return true
}

// indexCrowding returns the index of the oldest connection of the host that has most of them. The
// caller holds mu.
func (s *Listener) indexCrowding() int {
	counts, most := map[netip.Prefix]int{}, 0
	for _, p := range s.pending {
		counts[p.host]++
		most = max(most, counts[p.host])
	}
	return slices.IndexFunc(s.pending, func(p pending) bool { return counts[p.host] == most })
}

// release forgets a connection that admit has noted, and reports whether it was not dropped since.
func (s *Listener) release(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.pending, func(p pending) bool { return p.Conn == conn })
	if i >= 0 {
		s.pending = slices.Delete(s.pending, i, i+1)
	}
	return i >= 0 && !s.closed
}

// shake makes the handshake of a connection, and hands it on.
func (s *Listener) shake(conn net.Conn) {
	err := conn.SetDeadline(time.Now().Add(handshakeTime))
	var o Opening
	wrapped, admit := conn, func() bool { return s.release(conn) }
	if err == nil && s.identity.Wrap == nil {
		o, err = accept(conn, s.identity, admit)
	} else if err == nil {
		if o, err = accept(conn, s.identity, func() bool { return true }); err == nil {
			wrapped, err = s.identity.wrapAccepted(conn, admit)
		}
	}

	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err == nil {
		s.handle(wrapped, o)
		return
	}

	s.release(conn)
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strangers++
	s.last = fmt.Sprintf("that of %v: %v", conn.RemoteAddr(), err)
}
