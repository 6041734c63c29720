package lines

import (
	"github.com/goccl/goccl/transport"
)

// Group is what the ranks of one process know of a group.
type Group struct {
	states []*State
	words  *Words
	causes Causes
	tokens []chan struct{} // one per rank, capacity 1: wakes it
}

// Causes is where ranks write down failures: each rank into a place of its own,
// before it tries to make its failure the group's.
type Causes interface {
	Store(rank int, f *transport.Failure)
	Load(rank int) *transport.Failure
}

// NewGroup returns a group over states, which are zero.
func NewGroup(states []*State, words *Words, causes Causes) *Group {
	g := &Group{states: states, words: words, causes: causes, tokens: make([]chan struct{}, len(states))}
	for i := range g.tokens {
		g.tokens[i] = make(chan struct{}, 1)
	}
	return g
}

// Wake leaves a token for rank: it ends the sleep the rank is in, or its next
// one.
func (g *Group) Wake(rank int) {
	select {
	case g.tokens[rank] <- struct{}{}:
	default:
	}
}

// WakeAll leaves a token for every rank.
func (g *Group) WakeAll() {
	for r := range g.tokens {
		g.Wake(r)
	}
}

// WakeOthers leaves a token for every rank but me.
func (g *Group) WakeOthers(me int) {
	for r := range g.tokens {
		if r != me {
			g.Wake(r)
		}
	}
}

// announce makes an event visible: everybody looks at the group's state anew.
func (g *Group) announce() {
	g.words.events.Add(1)
	g.WakeAll()
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

// WakeWaiters wakes all ranks that sleep for `me`, which may be one of them.
func (g *Group) WakeWaiters(me int) {
	if g.words.sleepers.Load() == 0 {
		return
	}
	for r := range g.states {
		g.WakeWaiter(me, r)
	}
}
