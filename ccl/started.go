package ccl

import (
	"fmt"

	"github.com/goccl/goccl/internal/interleave"
)

// startedMessages holds the messages of Isend and Irecv that have not ended, in the order of their
// start. It has a lock of its own, because the engine's is held while a long message is copied, and
// Close never waits.
type startedMessages struct {
	mu          interleave.Mutex
	first, last *message
}

func (s *startedMessages) add(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.before = s.last; m.before == nil {
		s.first = m
	} else {
		m.before.next = m
	}
	s.last = m
}

func (s *startedMessages) remove(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.before == nil {
		s.first = m.next
	} else {
		m.before.next = m.next
	}

	if m.next == nil {
		s.last = m.before
	} else {
		m.next.before = m.before
	}
	m.before, m.next = nil, nil
}

// empty reports whether all messages have ended and were removed.
func (s *startedMessages) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first == nil
}

// addTo adds the messages to e.
func (s *startedMessages) addTo(e *UnfinishedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := s.first; m != nil; m = m.next {
		if ended, _ := m.state(); ended { // it is about to be removed
			continue
		}

		name := "recv"
		if m.what.sending {
			name = "send"
			e.Sends++
		} else {
			e.Receives++
		}
		e.addWork(name, &m.opts, " "+m.what.String())
	}
}

// direction is where a message goes to or comes from.
type direction struct {
	sending   bool
	peer, tag int
}

// String returns a text such as "to rank 3, tag 0" or "from any rank, tag 0".
func (d direction) String() string {
	verb, peer := "from", "any rank"
	if d.sending {
		verb = "to"
	}
	if d.peer != AnySource {
		peer = fmt.Sprintf("rank %d", d.peer)
	}
	return fmt.Sprintf("%s %s, tag %d", verb, peer, d.tag)
}
