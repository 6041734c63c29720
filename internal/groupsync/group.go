package groupsync

import (
	"context"

	"github.com/goccl/goccl/transport"
)

// Group is what the ranks of one process know of a group.
type Group struct {
	states []*State
	words  *Words
	causes Causes
	rest   Rest
	others Processes // rest, if ranks are processes; else nil
}

// Causes is where ranks write down failures, each into a place of its own, before it
// tries to make its failure the group's; and, beside them, why they refuse calls.
type Causes interface {
	Store(rank int, f *transport.Failure)
	Load(rank int) *transport.Failure
	// StoreReason writes down why rank refuses call seq. It replaces the reason of the
	// latest refusal, or where the call is the first of a run those of the last run. It
	// leaves failures alone.
	StoreReason(rank int, seq uint64, first bool, why string)
	// LoadReason returns why rank refused call seq, or "" if that has been replaced. The
	// rank may be writing another reason at the same time.
	LoadReason(rank int, seq uint64) string
}

// Rest is how ranks sleep and wake each other. The sleepers of R ranks are numbered: r is
// rank r in its calls, and R+r is its lane.
type Rest interface {
	// Wake leaves a token for a sleeper: it ends the sleep it is in, or its next one.
	Wake(sleeper int)
	// Sleep waits until there is a token for the sleeper, and takes it; or until ctx ends,
	// unless it is nil. It may return for no reason, and does so now and then where ranks
	// are Processes. woken reports whether it took a token.
	Sleep(sleeper int, ctx context.Context) (woken bool)
}

// Processes is the Rest of ranks that are processes: they can end without a word,
// and, where there are more of them than cores, wait for each other's cores.
type Processes interface {
	Rest
	// Yield leaves the core to whoever waits for it, and reports whether the core came
	// back soon.
	Yield() (soon bool)
	// Asleep reports whether a sleeper sleeps and there is no token for it.
	Asleep(sleeper int) bool
	// Dead reports whether rank's process has ended, and which it was.
	Dead(rank int) (pid int, dead bool)
}

// NewGroup returns a group over states, which are zero.
func NewGroup(states []*State, words *Words, causes Causes, rest Rest) *Group {
	g := &Group{states: states, words: words, causes: causes, rest: rest}
	g.others, _ = rest.(Processes)
	return g
}

// Wake leaves a token for rank in its calls.
func (g *Group) Wake(rank int) { g.rest.Wake(rank) }

// WakeAll leaves a token for every rank.
func (g *Group) WakeAll() {
	for r := range g.states {
		g.Wake(r)
	}
}

// WakeOthers leaves a token for every rank but me.
func (g *Group) WakeOthers(me int) {
	for r := range g.states {
		if r != me {
			g.Wake(r)
		}
	}
}

// announce makes an event visible, after the word that says what it is was stored: all ranks
// look at the group's state anew. (syncmodel: wordThenEvent; lane: laneWordThenEvent)
func (g *Group) announce() {
	g.words.events.Add(1)
	g.WakeAll()
	for r := range g.states {
		g.rest.Wake(g.p2p(r))
	}
}

// lane is the sleeper that rank's lane is.
func (g *Group) p2p(rank int) int { return len(g.states) + rank }

// WakeLane wakes rank's lane if it sleeps, after the caller has stored a word of a
// lane's messages. (syncmodel, lane: postThenResting, takeThenResting)
func (g *Group) WakeP2P(rank int) {
	if g.states[rank].resting.Load() != 0 {
		g.rest.Wake(g.p2p(rank))
	}
}

// WakeWaiter wakes rank if it sleeps for `me`, who has stored a word before.
func (g *Group) WakeWaiter(me, rank int) {
	if g.words.sleepers.Load() == 0 {
		return
	}
	if on := g.states[rank].waitOn.Load(); on == uint64(me)+1 || on == everyone {
		g.Wake(rank)
	}
}

// WakeWaiters wakes all ranks that sleep for `me`, which may be one of them and has stored
// a word before (rules storeThenSleepers and storeBeforeWake).
func (g *Group) WakeWaiters(me int) {
	if g.words.sleepers.Load() == 0 {
		return
	}
	for r := range g.states {
		g.WakeWaiter(me, r)
	}
}
