package tcp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// open returns the sockets of connections, by rank, and what waits for them. Where all are of the
// operating system they are taken out of Go's poller: there every packet would wake a thread, also
// while a rank polls.
func open(rank int, conns []net.Conn) ([]socket, waiter, error) {
	for r, c := range conns {
		if _, isSystem := c.(*net.TCPConn); r != rank && !isSystem {
			return openAny(rank, conns)
		}
	}

	e, err := newEpoll(len(conns))
	if err != nil {
		return nil, nil, err
	}

	sockets := make([]socket, len(conns))
	for r, c := range conns {
		if r == rank {
			continue
		}
		s := &rawSocket{fd: -1, epoll: e, rank: r}
		sockets[r], e.sockets[r] = s, s
		if err = s.take(c.(*net.TCPConn)); err != nil {
			for _, taken := range e.sockets[:r+1] {
				if taken != nil {
					_ = taken.close() // it may have none
				}
			}
			return nil, nil, errors.Join(fmt.Errorf("the connection to rank %d: %w", r, err), e.close())
		}
	}
	return sockets, e, nil
}

// rawSocket is a connection that this package alone reads and writes.
type rawSocket struct {
	fd      int
	in, out vector
	epoll   *epoll
	rank    int
	peer    *peer

	mu     sync.Mutex // guards the fields below, and what the epoll reports
	armed  bool
	closed bool
}

// take takes a connection out of Go's poller.
func (s *rawSocket) take(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var dupErr error
	if err := raw.Control(func(fd uintptr) { s.fd, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); err != nil || dupErr != nil {
		return errors.Join(err, os.NewSyscallError("dup", dupErr))
	}
	if err := s.epoll.control(s, unix.EPOLL_CTL_ADD, 0); err != nil {
		return err
	}
	return c.Close() // the connection goes on by its other descriptor
}

func (s *rawSocket) read(to [][]byte) (n int, err error) {
	n, errno := s.in.read(s.fd, to)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0, nil
	case errno != 0:
		return 0, os.NewSyscallError("readv", errno)
	case n == 0:
		return 0, errProcessEnded
	}
	return n, nil
}

func (s *rawSocket) write(from [][]byte) (n int, err error) {
	n, errno := s.out.write(s.fd, from)
	if errno == 0 || errno == unix.EAGAIN || errno == unix.EINTR {
		return n, nil
	}
	return 0, os.NewSyscallError("writev", errno)
}

func (s *rawSocket) bind(p *peer) { s.peer = p }

func (s *rawSocket) awaitRoom() { s.arm(true) }

// arm makes the epoll report the socket once, unless it does so already for the same events. One
// that has ended it would report all the time.
func (s *rawSocket) arm(isChanged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.peer.ended.Load() || s.armed && !isChanged {
		return
	}
	s.armed = true
	events := uint32(unix.EPOLLIN)
	if s.peer.hasQueue.Load() {
		events |= unix.EPOLLOUT
	}
	_ = s.epoll.control(s, unix.EPOLL_CTL_MOD, events) // a closed socket is reported by its read
}

// noteReported notes that the epoll reports the socket no more.
func (s *rawSocket) noteReported() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
}

func (s *rawSocket) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return os.NewSyscallError("close", unix.Close(s.fd))
}

// epoll waits for sockets in Go's poller. A socket is reported once, and again when await begins.
type epoll struct {
	fd      int
	file    *os.File
	raw     syscall.RawConn
	sockets []*rawSocket // by rank
	events  []unix.EpollEvent
	isWoken atomic.Bool
}

func newEpoll(n int) (*epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that it goes to Go's poller
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	e := &epoll{fd: fd, file: os.NewFile(uintptr(fd), "epoll"), sockets: make([]*rawSocket, n), events: make([]unix.EpollEvent, n)}
	if e.raw, err = e.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, e.file.Close())
	}
	return e, nil
}

// control makes the epoll report events of a socket, once.
func (e *epoll) control(s *rawSocket, op int, events uint32) error {
	event := unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: int32(s.rank)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(e.fd, op, s.fd, &event))
}

func (e *epoll) await(limit time.Duration) {
	for _, s := range e.sockets {
		if s != nil {
			s.arm(false)
		}
	}

	_ = e.file.SetReadDeadline(time.Now().Add(limit))
	if e.isWoken.Swap(false) {
		return
	}
	_ = e.raw.Read(func(uintptr) (done bool) { // its error is that of the deadline
		n, _ := unix.EpollWait(e.fd, e.events, 0)
		for _, event := range e.events[:max(n, 0)] {
			e.sockets[event.Fd].noteReported()
		}
		return n > 0
	})
	e.isWoken.Store(false)
}

func (e *epoll) wake() {
	e.isWoken.Store(true)
	_ = e.file.SetReadDeadline(time.Unix(1, 0))
}

func (e *epoll) close() error { return e.file.Close() }
