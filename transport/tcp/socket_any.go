package tcp

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// anySocket is a connection of any kind, which two goroutines read and write.
type anySocket struct {
	conn  net.Conn
	bells *bells

	mu      sync.Mutex
	changed sync.Cond
	arrived []byte // has been read and not taken
	readErr error
	leaving []byte // is being written
	memory  []byte // of leaving
	sendErr error
	isEnded bool

	running sync.WaitGroup
}

const (
	// anyBytes is how much is read or written at once.
	anyBytes = 128 << 10
	// lastWriteTime is how long the last write may take.
	lastWriteTime = time.Second
)

// openAny returns the sockets of connections of any kind.
func openAny(rank int, conns []net.Conn) ([]socket, waiter, error) {
	b := &bells{rung: make(chan struct{}, 1), timer: time.NewTimer(0)}
	sockets := make([]socket, len(conns))
	for r, c := range conns {
		if r != rank {
			s := &anySocket{conn: c, bells: b, memory: make([]byte, 0, anyBytes)}
			s.changed.L = &s.mu
			s.running.Go(s.readAll)
			s.running.Go(s.writeAll)
			sockets[r] = s
		}
	}
	return sockets, b, nil
}

// readAll reads until the connection ends.
func (s *anySocket) readAll() {
	b := make([]byte, anyBytes)
	for {
		n, err := s.conn.Read(b)
		s.mu.Lock()
		s.arrived, s.readErr = b[:n], err
		s.bells.wake()

		for len(s.arrived) > 0 && !s.isEnded {
			s.changed.Wait()
		}
		isOver := err != nil || s.isEnded
		s.mu.Unlock()
		if isOver {
			return
		}
	}
}

// writeAll writes until the connection ends.
func (s *anySocket) writeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.sendErr == nil {
		for len(s.leaving) == 0 && !s.isEnded {
			s.changed.Wait()
		}
		if len(s.leaving) == 0 {
			return
		}

		b := s.leaving
		s.mu.Unlock()
		_, err := s.conn.Write(b)
		s.mu.Lock()
		s.leaving, s.sendErr = nil, err
		s.changed.Broadcast()
		s.bells.wake()
	}
}

func (s *anySocket) read(to [][]byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range to {
		k := copy(b, s.arrived)
		s.arrived, n = s.arrived[k:], n+k
	}

	switch {
	case n > 0:
		s.changed.Broadcast()
		return n, nil
	case errors.Is(s.readErr, io.EOF):
		return 0, errProcessEnded
	}
	return 0, s.readErr
}

func (s *anySocket) write(from [][]byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.leaving) > 0 || s.sendErr != nil {
		return 0, s.sendErr
	}
	b := s.memory[:0]
	for _, piece := range from {
		b = append(b, piece[:min(len(piece), cap(b)-len(b))]...)
	}
	s.leaving = b
	s.changed.Broadcast()
	return len(b), nil
}

func (s *anySocket) bind(*peer) {}
func (s *anySocket) awaitRoom() {}

func (s *anySocket) close() error {
	s.mu.Lock()
	s.isEnded = true
	s.changed.Broadcast()
	_ = s.conn.SetWriteDeadline(time.Now().Add(lastWriteTime)) // otherwise who does not read holds it up
	for len(s.leaving) > 0 && s.sendErr == nil {
		s.changed.Wait()
	}
	s.mu.Unlock()
	err := s.conn.Close()
	s.running.Wait()
	return err
}

// bells wait for connections whose goroutines ring them.
type bells struct {
	rung  chan struct{}
	timer *time.Timer // of await
}

func (b *bells) await(limit time.Duration) {
	b.timer.Reset(limit)
	select {
	case <-b.rung:
	case <-b.timer.C:
	}
}

func (b *bells) wake() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

func (b *bells) close() error {
	b.timer.Stop()
	return nil
}
