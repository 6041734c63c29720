package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/transport"
)

// naiveLane is the lane of a naive endpoint: everybody looks again after every change.
type naiveLane struct {
	*naive
	woken bool
	seen  int // events as of the end of the last Rest
}

func (ep *naive) P2P() transport.P2P { return ep.lanes[ep.rank] }

func (l *naiveLane) TryPut(to int, m *transport.Message) (n int, ok bool, err error) {
	l.locked(func() {
		stream := [2]int{l.rank, to}
		if ok = len(l.letters[stream]) == 0; ok {
			n = l.room(m)
			part := *m
			part.Bytes = m.Bytes[:n]
			if l.copies {
				part.Bytes = bytes.Clone(part.Bytes)
			}
			l.letters[stream] = append(l.letters[stream], part)
		}
	})
	return n, ok, nil
}

func (l *naiveLane) TryDrained(to int) (drained bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.letters[[2]int{l.rank, to}]) == 0
}

func (l *naiveLane) TryNext(from int) (view transport.Message, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stream := [2]int{from, l.rank}
	if ok = len(l.letters[stream]) > 0 && l.failure == nil; ok {
		view, l.viewed[stream] = l.letters[stream][0], true
	}
	return view, ok, nil
}

func (l *naiveLane) Take(from int) {
	l.locked(func() {
		stream := [2]int{from, l.rank}
		l.letters[stream], l.viewed[stream] = nil, false
	})
}

func (l *naiveLane) Rest(ready func() bool, _ bool) {
	for {
		l.mu.Lock()
		changes := l.changes
		l.mu.Unlock()
		if ready() {
			l.locked(func() { l.waitsFor[l.rank] = 0 })
			return
		}
		l.mu.Lock()
		for !l.woken && l.seen == l.events && l.changes == changes {
			l.changed.Wait()
		}
		news := l.woken || l.seen != l.events
		l.woken, l.seen = false, l.events
		l.mu.Unlock()
		if news {
			return
		}
	}
}

func (l *naiveLane) WaitFor(peer int) {
	l.locked(func() { l.waitsFor[l.rank] = peer + 1 })
}

func (l *naiveLane) Behind(peer int) int {
	return l.behind(peer, func(who, on int) bool { return len(l.letters[[2]int{on, who}]) == 0 })
}

func (l *naiveLane) behind(peer int, waits func(who, on int) bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range l.n {
		if on := l.waitsFor[peer]; on > 0 && waits(peer, on-1) {
			peer = on - 1
		}
	}
	return peer
}

func (l *naiveLane) Wake() { l.locked(func() { l.woken = true }) }

func (l *naiveLane) Lost(peer int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed[l.rank]:
		return transport.ErrClosed
	case l.closed[peer]:
		return &transport.PeerLostError{Rank: peer}
	}
	return nil
}

func (l *naiveLane) TryWithdraw(to int) (taken, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stream := [2]int{l.rank, to}
	taken = len(l.letters[stream]) == 0
	if ok = taken || l.copies || !l.viewed[stream]; ok && !l.copies {
		l.letters[stream] = nil // no rank waits for that
	}
	return taken, ok
}

// Group implements transport.Groups.
func (ep *naive) Group(ctx context.Context, number uint64, members []int) (_ transport.Endpoint, err error) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	me := slices.Index(members, ep.rank)
	for i, m := range members {
		if m < 0 || m >= ep.n || slices.Contains(members[:i], m) || me < 0 {
			return nil, errors.New("these cannot be members")
		}
	}
	key := fmt.Sprint(number, members)
	if ep.further[key] == nil && me >= 0 {
		ep.further[key] = newNaive(len(members), ep.naiveKind)
	}
	open := ep.further[key]
	switch {
	case me < 0:
		return nil, errors.New("there are no members")
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case ep.closed[ep.rank]:
		return nil, transport.ErrClosed
	case ep.failure != nil:
		return nil, transport.ErrFailed
	}
	for i, m := range members {
		if open[i] != nil && ep.closed[m] {
			return nil, &transport.PeerLostError{Rank: i}
		}
	}
	mine := open[me]
	open[me] = nil
	if !slices.ContainsFunc(open, func(ep *naive) bool { return ep != nil }) {
		delete(ep.further, key)
	}
	return mine, nil
}
