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
	served Served
	on     int    // for whom it rests, -1: for no rank in particular
	shown  uint64 // what laneWaitOn says
	_      [128]byte
}

// Served returns how many parts of P2P messages rank `by` has put for rank `of` and taken
// from it; it only grows. Any rank of the group may call it.
type Served func(by, of int) uint64

// NewP2P returns the P2P of a rank, whose rests poll if poll is set.
func NewP2P(r *Member, poll bool, served Served) *P2P {
	return &P2P{member: r, budget: newBudget(poll, r.group.others), dead: make([]atomic.Bool, r.Size()), served: served, on: -1}
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
	for {
		edge := l.edge(&w) // before ready looks: what comes later makes it void
		if ready() || l.news() {
			break
		}
		switch own.spend(&w, g.others) {
		case announced:
			l.member.state.resting.Store(1)
		case asleep:
			l.show(edge)
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
	if l.on != peer || l.shown&gaveUp != 0 {
		l.show(0)
	}
	l.on = peer
}

// A value of laneWaitOn says for whom the lane waits, rank+1, and what that rank had served
// it when it looked last; gaveUp may be set.
const (
	edgeRank   = 1<<24 - 1
	edgeServed = ^uint64(edgeRank) &^ gaveUp
)

// edge is the value for a wait that has begun to sleep.
func (l *P2P) edge(w *wait) uint64 {
	if !w.parked || l.on < 0 {
		return 0
	}
	return l.edgeTo(l.member.rank, l.on)
}

func (l *P2P) edgeTo(waiter, on int) uint64 {
	return l.served(on, waiter)<<24&edgeServed | uint64(on+1)
}

func (l *P2P) show(edge uint64) {
	if l.shown != edge {
		l.shown = edge
		l.member.state.laneWaitOn.Store(edge)
	}
}

// Behind implements transport.P2P. What a lane shows counts only as long as the rank that it
// waits for has served it nothing more: if that has, and the lane has not looked, it is the
// lane's rank that does not go on, wherever it was stopped.
func (l *P2P) Behind(peer int) int {
	if l.on >= 0 {
		l.shown = l.edgeTo(l.member.rank, l.on) | gaveUp
		l.member.state.laneWaitOn.Store(l.shown)
		l.member.gaveUp.Store(true)
	}
	g := l.member.group
	return l.member.follow(peer, func(who int) uint64 {
		s := g.states[who]
		if on := s.waitOn.Load() &^ gaveUp; on != 0 && on <= uint64(len(g.states)) {
			return on
		}
		edge := s.laneWaitOn.Load() &^ gaveUp
		on := edge & edgeRank
		if on == 0 || on > uint64(len(g.states)) || on != uint64(who)+1 && edge != l.edgeTo(who, int(on)-1) {
			return 0
		}
		return on
	}, func(who int) bool {
		s := g.states[who]
		return isUp(&s.waitOn, g.others, who) || isUp(&s.laneWaitOn, g.others, g.p2p(who))
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
