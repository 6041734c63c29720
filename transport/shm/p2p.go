package shm

import (
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// p2p implements transport.P2P. Its messages use separate channels from the same pool as the
// messages of calls.
type p2p struct {
	*groupsync.P2P
	*node
	rank int
}

func (ep *endpoint) P2P() transport.P2P { return &ep.p2p }

func (l *p2p) TryPut(to int, m *transport.Message) (n int, ok bool, err error) {
	word := l.pair(l.layout.p2pPairs, l.rank, to)
	off := l.channelAt(word, to)
	if off == 0 {
		if off, err = l.takeChannel(word, l.rank, to); err != nil {
			return 0, false, err
		}
	}

	if c := at[channel](l.arena, off); c.posted.Load()-c.taken.Load() >= uint64(l.geometry.Slots) {
		return 0, false, nil
	}
	n = l.write(off, m)
	l.group.WakeP2P(to)
	return n, true, nil
}

func (l *p2p) TryDrained(to int) bool {
	off := l.channelAt(l.pair(l.layout.p2pPairs, l.rank, to), to)
	if off == 0 {
		return true
	}
	c := at[channel](l.arena, off)
	return c.taken.Load() == c.posted.Load()
}

func (l *p2p) TryNext(from int) (view transport.Message, ok bool, err error) {
	off := l.channelAt(l.pair(l.layout.p2pPairs, from, l.rank), from)
	if off == 0 || l.Failed() {
		return view, false, nil
	}
	c := at[channel](l.arena, off)
	part := c.taken.Load()
	if c.posted.Load() <= part {
		return view, false, nil
	}
	view, err = l.read(off, part, from)
	return view, err == nil, err
}

func (l *p2p) Take(from int) {
	c := at[channel](l.arena, l.channelAt(l.pair(l.layout.p2pPairs, from, l.rank), from))
	c.taken.Add(1)
	l.group.WakeP2P(from)
}

// served implements groupsync.Served.
func (n *node) served(by, of int) (parts uint64) {
	if off := n.channelAt(n.pair(n.layout.p2pPairs, by, of), by); off != 0 {
		parts += at[channel](n.arena, off).posted.Load()
	}
	if off := n.channelAt(n.pair(n.layout.p2pPairs, of, by), of); off != 0 {
		parts += at[channel](n.arena, off).taken.Load()
	}
	return parts
}

// TryWithdraw implements transport.P2P. It always succeeds, because no rank views this rank's
// memory. It touches no shared memory, so it needs no guard.
func (l *p2p) TryWithdraw(int) (taken, ok bool) { return false, true }
