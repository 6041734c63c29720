package local

import (
	"github.com/goccl/goccl/internal/lines"
	"github.com/goccl/goccl/transport"
)

// lane implements transport.Lane: messages go by pointer, as in calls.
type lane struct {
	*lines.Lane
	group *group
	rank  int
}

// Lane implements transport.Endpoint.
func (ep *endpoint) Lane() transport.Lane { return &ep.lane }

func (l *lane) outbox(to int) *mailbox  { return l.group.lanes.of(l.rank, to) }
func (l *lane) inbox(from int) *mailbox { return l.group.lanes.of(from, l.rank) }

func (l *lane) TryPut(to int, m *transport.Message) (n int, ok bool, err error) {
	if !l.TryDrained(to) {
		return 0, false, nil
	}
	b := l.outbox(to)
	b.message = *m
	b.posted.Add(1)
	l.group.WakeLane(to)
	return len(m.Bytes), true, nil
}

func (l *lane) TryDrained(to int) bool {
	b := l.outbox(to)
	return b.taken.Load() == b.posted.Load()
}

// TryNext implements transport.Lane. Somebody whose group fails looks whether his message
// is being viewed; so the receiver says that it views it, and then looks whether the group
// has failed. Of the two, one sees the other.
func (l *lane) TryNext(from int) (view transport.Message, ok bool, err error) {
	b := l.inbox(from)
	n := b.taken.Load() + 1
	if b.posted.Load() < n {
		return view, false, nil
	}
	if b.viewed.Load() < n {
		b.viewed.Store(n)
		if l.Failed() {
			b.viewed.Store(n - 1)
			l.group.WakeLane(from)
			return view, false, nil
		}
	}
	return b.message, true, nil
}

func (l *lane) Take(from int) {
	l.inbox(from).taken.Add(1)
	l.group.WakeLane(from)
}

// Withdraw implements transport.Lane.
func (l *lane) Withdraw() {
	for peer := range l.group.lanes {
		in := l.inbox(peer)
		in.viewed.Store(in.taken.Load())
		l.group.WakeLane(peer)
	}
	l.WaitOut(func() bool {
		for peer := range l.group.lanes {
			if out := l.outbox(peer); out.viewed.Load() > out.taken.Load() {
				return false
			}
		}
		return true
	})
}
