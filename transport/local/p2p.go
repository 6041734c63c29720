package local

import (
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// p2p implements transport.P2P. Messages travel by pointer, as in calls.
type p2p struct {
	*groupsync.P2P
	group *group
	rank  int
}

func (ep *endpoint) P2P() transport.P2P { return &ep.p2p }

func (l *p2p) outbox(to int) *mailbox  { return l.group.p2pBoxes.get(l.rank, to) }
func (l *p2p) inbox(from int) *mailbox { return l.group.p2pBoxes.get(from, l.rank) }

// TryPut implements transport.P2P. (rule writeThenPost)
func (l *p2p) TryPut(to int, m *transport.Message) (n int, ok bool, err error) {
	if !l.TryDrained(to) {
		return 0, false, nil
	}
	b := l.outbox(to)
	b.message = *m
	b.posted.Add(1)
	l.group.WakeP2P(to)
	return len(m.Bytes), true, nil
}

func (l *p2p) TryDrained(to int) bool {
	b := l.outbox(to)
	return b.taken.Load() == b.posted.Load()
}

// TryNext implements transport.P2P. The receiver claims a message before it views it, and the
// sender claims it to withdraw it. One of the two succeeds. (rule claimIsCAS)
func (l *p2p) TryNext(from int) (view transport.Message, ok bool, err error) {
	b := l.inbox(from)
	n := b.taken.Load() + 1
	if b.posted.Load() < n {
		return view, false, nil
	}

	claim := b.claim.Load()
	if claim < viewedBy(n) {
		if l.Failed() || !b.claim.CompareAndSwap(claim, viewedBy(n)) {
			return view, false, nil
		}
	} else if claim != viewedBy(n) {
		return view, false, nil
	}
	return b.message, true, nil
}

// Take implements transport.P2P. (rule takeAfterCopy)
func (l *p2p) Take(from int) {
	l.inbox(from).taken.Add(1)
	l.group.WakeP2P(from)
}

// served implements groupsync.Served.
func (g *group) served(by, of int) (parts uint64) {
	if b := g.p2pBoxes.find(by, of); b != nil {
		parts += b.posted.Load()
	}
	if b := g.p2pBoxes.find(of, by); b != nil {
		parts += b.taken.Load()
	}
	return parts
}

// TryWithdraw implements transport.P2P. The reason for the withdrawal does not matter: a message
// that the receiver views stays with the receiver until it takes it. (rules
// closeWithdraws, lostWithdraws, failureWithdraws, viewedIsAwaited, takenSucceeds)
func (l *p2p) TryWithdraw(to int) (taken, ok bool) {
	b := l.outbox(to)
	n := b.posted.Load()
	if b.taken.Load() == n {
		return true, true
	}
	claim := b.claim.Load()
	if claim < viewedBy(n) {
		return false, b.claim.CompareAndSwap(claim, withdrawn(n))
	}
	return false, claim == withdrawn(n)
}
