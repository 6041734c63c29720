package packet

import (
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// p2p implements transport.P2P.
type p2p struct {
	*groupsync.P2P
	group *group
}

// P2P implements transport.Endpoint.
func (ep *Endpoint) P2P() transport.P2P { return ep.p2p }

func (l *p2p) TryPut(to int, m *transport.Message) (n int, ok bool, err error) {
	if l.group.process.poll(); !l.group.streams[1].out[to].hasRoom() {
		return 0, false, nil
	}
	return l.group.putPart(to, m, true), true, nil
}

func (l *p2p) TryDrained(to int) bool {
	l.group.process.poll()
	out := &l.group.streams[1].out[to]
	return out.taken.Load() == out.posted.Load()
}

func (l *p2p) TryNext(from int) (view transport.Message, ok bool, err error) {
	l.group.process.poll()
	if l.Failed() {
		return view, false, nil
	}
	in := &l.group.streams[1].in[from]
	taken := in.taken.Load()
	if in.posted.Load() <= taken {
		return view, false, nil
	}
	return in.parts[taken%window].view, true, nil
}

func (l *p2p) Take(from int) { l.group.takePart(from, true) }

// TryWithdraw implements transport.P2P. It always succeeds: the wire copies what has not left.
func (l *p2p) TryWithdraw(to int) (taken, ok bool) {
	l.group.process.wire.Settle(l.group.processOf[to])
	return false, true
}

// servedBy implements groupsync.Served. Of other ranks it knows what their last
// replies have.
func (g *group) servedBy(by, of int) uint64 {
	s := &g.streams[1]
	switch g.rank {
	case by:
		return s.out[of].posted.Load() + s.in[of].taken.Load()
	case of:
		return s.in[by].posted.Load() + s.out[by].taken.Load()
	}
	return g.queries.servedBy(by, of)
}
