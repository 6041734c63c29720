package groupsync

import (
	"sync/atomic"

	"github.com/goccl/goccl/transport"
)

// Lane is the part of a transport.P2P that all transports share. It belongs to one
// goroutine, but for Wake and Lost.
type P2P struct {
	_      [128]byte // nobody else's memory on the cache lines that it writes
	member *Member
	budget budget
	events uint64        // as of the end of the last Rest
	dead   []atomic.Bool // by rank: processes that were found dead
	looked suspicion
	woken  atomic.Bool
	on     int  // for whom it rests, -1: for no rank in particular
	shown  bool // that others see it
	_      [128]byte
}

// NewLane returns the lane of a rank, whose rests poll if poll is set.
func NewP2P(r *Member, poll bool) *P2P {
	return &P2P{member: r, budget: newBudget(poll, r.group.others), dead: make([]atomic.Bool, r.Size()), on: -1}
}

// Rest implements transport.P2P. It tests once more after it has said that it rests.
// (syncmodel, lane: announceThenTest)
func (l *P2P) Rest(ready func() bool, patient bool) {
	own := &l.budget
	if patient {
		own = new(budget)
	}
	g := l.member.group
	var w wait
	for !ready() && !l.news() {
		switch own.spend(&w, g.others) {
		case announced:
			l.member.state.resting.Store(1)
			if l.on >= 0 {
				l.shown = true
				l.member.state.laneWaitOn.Store(uint64(l.on) + 1)
			}
		case asleep:
			woken := g.rest.Sleep(g.p2p(l.member.rank), nil)
			if g.others != nil && l.looked.arises(woken) {
				l.findDead()
			}
		}
	}
	own.end(&w)
	if w.parked {
		l.member.state.resting.Store(0)
	}
}

// WaitFor implements transport.P2P. Only a rest that sleeps shows it to others.
func (l *P2P) WaitFor(peer int) {
	if l.on = peer; peer < 0 && l.shown {
		l.shown = false
		l.member.state.laneWaitOn.Store(0)
	}
}

// Behind implements transport.P2P.
func (l *P2P) Behind(peer int) int {
	g := l.member.group
	return l.member.follow(peer, func(who int) uint64 {
		s := g.states[who]
		if on := s.waitOn.Load(); on != 0 && on <= uint64(len(g.states)) {
			return on
		}
		return s.laneWaitOn.Load()
	}, func(who int) bool {
		if g.others == nil {
			return false
		}
		// A token that nobody sleeps for says nothing: one who has given up leaves it there.
		s := g.states[who]
		return s.waitOn.Load() != 0 && g.others.Woken(who) || s.resting.Load() != 0 && g.others.Woken(g.p2p(who))
	})
}

// news reports whether Wake was called or there were events, once: it compares with the
// events of the last Rest, whenever this one began. (syncmodel, lane: newsAreKept)
func (l *P2P) news() bool {
	if l.woken.Load() && l.woken.Swap(false) {
		return true
	}
	events := l.member.group.words.events.Load()
	news := events != l.events
	l.events = events
	return news
}

// findDead looks whether processes have died since it did so last, which is news.
func (l *P2P) findDead() {
	for peer := range l.dead {
		if !l.dead[peer].Load() && l.member.dead(peer) {
			l.dead[peer].Store(true)
			l.woken.Store(true)
		}
	}
}

// Wake implements transport.P2P.
func (l *P2P) Wake() {
	l.woken.Store(true)
	g := l.member.group
	g.rest.Wake(g.p2p(l.member.rank))
}

// Failed reports whether the group has failed.
func (l *P2P) Failed() bool { return l.member.Failed() }

// Lost implements transport.P2P.
func (l *P2P) Lost(peer int) error {
	switch r := l.member; {
	case r.closed.Load():
		return transport.ErrClosed
	case l.dead[peer].Load() || r.group.states[peer].left.Load() != 0:
		return r.lost(peer)
	}
	return nil
}
