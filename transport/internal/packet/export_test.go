package packet

import (
	"testing"

	"github.com/goccl/goccl/transport"
)

// OnNodes connects ranks on nodes with these numbers by a net.
func OnNodes(t testing.TB, nodes []int) []transport.Endpoint { return joinAll(t, processesOn(nodes)) }

// NoticeDeath makes the process of a rank find another one dead.
func NoticeDeath(ep transport.Endpoint, dead int) {
	p := ep.(*Endpoint).group.process
	p.deaths.markDead(dead)
	p.noticeDeaths()
}

// PretendWait makes the process of a rank believe that another one waits for it, as that one has sent before it went on.
func PretendWait(ep transport.Endpoint, other int) {
	g := ep.(*Endpoint).group
	words := g.sync.Words(other)
	words[4] = uint64(g.rank) + 1 // waitOn
	g.sync.Update(g.rank, other, words)
}

// Hold keeps what a process sends from that of a rank until arrive is called.
func Hold(ep transport.Endpoint, from int) (arrive func()) {
	w := ep.(*Endpoint).group.process.wire.(*netWire)
	hold := func(is bool) {
		w.net.mu.Lock()
		defer w.net.mu.Unlock()
		w.net.slow[[2]int{from, w.me}] = is
	}
	hold(true)
	return func() { hold(false) }
}

// Stop makes the process of a rank handle no packet until goOn is called.
func Stop(ep transport.Endpoint) (goOn func()) {
	p := ep.(*Endpoint).group.process
	p.polling.Lock()
	return p.polling.Unlock
}
