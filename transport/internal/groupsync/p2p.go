package groupsync

import (
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// P2P is the part of a transport.P2P that all transports share. It belongs to one goroutine,
// except for Wake, Failed and Lost, which any goroutine may call.
type P2P struct {
	_      [128]byte // keeps memory of others off the cache lines that it writes
	member *Member
	budget budget
	events uint64            // as of the end of the last Rest
	isDead []interleave.Bool // by rank: the process was found dead
	woken  interleave.Bool
	served Served

	suspicion suspicion
	awaited   int    // the rank of the last WaitFor; -1: no particular rank
	shown     uint64 // the value of p2pWaitOn
	_         [128]byte
}

// Served returns how many parts of P2P messages rank by has put for rank of, plus how many it
// has taken from that rank. The sum only grows. Any rank of the group may call it.
type Served func(by, of int) uint64

// NewP2P returns the P2P of a rank. If poll is set, Rest polls before it sleeps.
func NewP2P(r *Member, poll bool, served Served) *P2P {
	return &P2P{member: r, budget: newBudget(poll, r.group.processes), isDead: make([]interleave.Bool, r.Size()), served: served, awaited: -1}
}

// Rest implements transport.P2P. It tests once more after it has announced that it rests.
// (rule announceThenTest)
func (l *P2P) Rest(ready func() bool, noSpin bool) {
	b := &l.budget
	if noSpin {
		b = new(budget)
	}
	g := l.member.group
	var w wait

	for {
		edge := l.edge(&w) // before ready looks: anything served later makes it void
		if ready() || l.hasNews() {
			break
		}

		switch b.spend(&w, g.processes) {
		case announced:
			l.member.state.resting.Store(1)
		case asleep:
			l.showWait(edge)
			woken := g.rest.Sleep(g.p2p(l.member.rank), nil)
			if g.processes != nil && l.suspicion.arises(woken) {
				l.findDead()
			}
		}
	}

	b.end(&w)
	if w.parked {
		l.member.state.resting.Store(0)
	}
}

// WaitFor implements transport.P2P. Other ranks see it only once a Rest sleeps.
func (l *P2P) WaitFor(peer int) {
	if l.awaited != peer || l.shown&gaveUp != 0 {
		l.showWait(0)
	}
	l.awaited = peer
}

// A value of p2pWaitOn consists of 1 + the rank that the P2P waits for, and of what that rank
// had served it as of its last look; gaveUp may be set as well.
const (
	edgeRank   = 1<<24 - 1
	edgeServed = ^uint64(edgeRank) &^ gaveUp
)

// edge returns the value of p2pWaitOn for a wait that has started to sleep.
func (l *P2P) edge(w *wait) uint64 {
	if !w.parked || l.awaited < 0 {
		return 0
	}
	return l.edgeTo(l.member.rank, l.awaited)
}

func (l *P2P) edgeTo(waiter, on int) uint64 {
	return l.served(on, waiter)<<24&edgeServed | uint64(on+1)
}

func (l *P2P) showWait(edge uint64) {
	if l.shown != edge {
		l.shown = edge
		l.member.state.p2pWaitOn.Store(edge)
	}
}

// Behind implements transport.P2P. The value of p2pWaitOn counts only while the awaited rank has
// served the waiter nothing more. If that rank has, and the waiter has not looked, the waiter is
// the rank that makes no progress, wherever it was stopped.
func (l *P2P) Behind(peer int) int {
	if l.awaited >= 0 {
		l.shown = l.edgeTo(l.member.rank, l.awaited) | gaveUp
		l.member.state.p2pWaitOn.Store(l.shown)
		l.member.gaveUp.Store(true)
	}
	l.member.catchUp()

	g := l.member.group
	return l.member.followWaits(peer, l.waitOf, func(who int) bool {
		s := g.states[who]
		return isAwake(&s.waitOn, g.rest, who) || isAwake(&s.p2pWaitOn, g.rest, g.p2p(who))
	})
}

// waitOf returns 1 + the rank that a rank waits for, or 0.
func (l *P2P) waitOf(who int) uint64 {
	states := l.member.group.states
	if on := waitsFor(states[who].waitOn.Load(), len(states)); on >= 0 {
		return uint64(on) + 1
	}

	edge := states[who].p2pWaitOn.Load() &^ gaveUp
	on := edge & edgeRank
	if on == 0 || on > uint64(len(states)) || on != uint64(who)+1 && edge != l.edgeTo(who, int(on)-1) {
		return 0
	}
	return on
}

// AwaitedBy implements transport.P2P.
func (l *P2P) AwaitedBy(peer int) int { return int(l.waitOf(peer)) - 1 }

// hasNews reports, once, whether Wake was called or events have occurred. It compares with the
// events of the last Rest, not with those at the start of this one. (rule newsAreKept)
func (l *P2P) hasNews() bool {
	if l.woken.Load() && l.woken.Swap(false) {
		return true
	}
	events := l.member.group.words.events.Load()
	isNew := events != l.events
	l.events = events
	return isNew
}

// findDead looks for processes that have died since its last call. A new death counts as news.
func (l *P2P) findDead() {
	for peer := range l.isDead {
		if !l.isDead[peer].Load() && l.member.isDead(peer) {
			l.isDead[peer].Store(true)
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
	case r.isClosed.Load():
		return transport.ErrClosed
	case peer < 0:
		return l.findLost()
	case l.isDead[peer].Load() || r.group.HasDeparted(peer):
		return r.lostError(peer)
	}
	return nil
}

// findLost returns the error of a rank that has died before it left, or that all others have left;
// otherwise nil.
func (l *P2P) findLost() error {
	departed, others := -1, 0
	for peer := range l.isDead {
		switch {
		case peer == l.member.rank:
		case l.member.group.HasDeparted(peer):
			departed = peer
		case l.isDead[peer].Load():
			return l.member.lostError(peer)
		default:
			others++
		}
	}

	if others > 0 || departed < 0 {
		return nil
	}

	e := l.member.lostError(departed)
	for peer := range l.isDead {
		if peer != l.member.rank && len(l.isDead) > 2 {
			e.Left = append(e.Left, peer)
			if remote := l.member.group.remote; remote != nil {
				e.Hosts = append(e.Hosts, remote.Host(peer))
			}
		}
	}
	return e
}
