package groupsync

import "context"

// Group is one process's handle on the shared state of a group of ranks.
type Group struct {
	states []*State
	words  *Words
	causes Causes
	rest   Rest

	processes Processes // rest if the ranks are processes, otherwise nil
	remote    Remote    // rest if the ranks share no memory, otherwise nil
}

// Rest puts ranks to sleep and wakes them. A group of R ranks has 2R sleepers: sleeper r is
// rank r in its calls, and sleeper R+r is its P2P.
type Rest interface {
	// Wake leaves a token for a sleeper, which ends its current sleep or its next one.
	Wake(sleeper int)
	// Sleep waits until the sleeper has a token and takes it, or until ctx ends; ctx may be
	// nil. It may return early without a token; if the ranks are processes it does so
	// regularly, so that the caller looks for dead ones. woken reports whether it took a token.
	Sleep(sleeper int, ctx context.Context) (woken bool)
	// IsAsleep reports whether a sleeper that has announced its sleep sleeps and has no token.
	IsAsleep(sleeper int) bool
}

// Processes is the Rest of ranks that are processes. A process can die without notice, and
// may wait for a core if the ranks outnumber the cores.
type Processes interface {
	Rest
	// Yield offers the core to other processes, and reports whether it came back soon.
	Yield() (soon bool)
	// LostCore tells that another thread has run for long on the core of rank, which polls. If
	// it may have been that of another rank which polled as well, it moves rank to another core.
	LostCore(rank int)
	// Dead reports whether rank's process has died, and returns its process id.
	Dead(rank int) (pid int, dead bool)
}

// NewGroup returns a group over states and words, which must be zero.
func NewGroup(states []*State, words *Words, causes Causes, rest Rest) *Group {
	g := &Group{states: states, words: words, causes: causes, rest: rest}
	g.processes, _ = rest.(Processes)
	g.remote, _ = rest.(Remote)
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

// WakeOthers leaves a token for every rank except me.
func (g *Group) WakeOthers(me int) {
	for r := range g.states {
		if r != me {
			g.Wake(r)
		}
	}
}

// announce makes all ranks look at the group's state again. The caller must already have stored
// the word that describes the event. (test/syncmodel: wordThenEvent)
func (g *Group) announce() {
	g.words.events.Add(1)
	g.WakeAll()
	for r := range g.states {
		g.rest.Wake(g.p2p(r))
	}
}

// p2p returns the sleeper of rank's P2P.
func (g *Group) p2p(rank int) int { return len(g.states) + rank }

// WakeP2P wakes rank's P2P if it sleeps. The caller must already have stored the word that
// announces or takes a message. (rules postThenResting, takeThenResting)
func (g *Group) WakeP2P(rank int) {
	if g.states[rank].resting.Load() != 0 {
		g.rest.Wake(g.p2p(rank))
	}
}

// wakeWaiter wakes rank if it sleeps and waits for on, which has stored the word that rank may wait
// for, and reports whether it did.
func (g *Group) wakeWaiter(on, rank int) bool {
	if g.words.sleepers.Load() == 0 {
		return false
	}
	if of := g.states[rank].waitOn.Load(); of != uint64(on)+1 && of != anyRank {
		return false
	}
	g.Wake(rank)
	return true
}

// wakeWaiters does that for all ranks, including on. (test/syncmodel: storeThenSleepers,
// storeBeforeWake)
func (g *Group) wakeWaiters(on int) (woke bool) {
	if g.words.sleepers.Load() == 0 {
		return false
	}
	for rank := range g.states {
		woke = g.wakeWaiter(on, rank) || woke
	}
	return woke
}
