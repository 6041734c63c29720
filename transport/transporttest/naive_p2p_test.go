package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/transport"
)

// naiveP2P is the P2P of a naive endpoint: every rank looks again after every change.
type naiveP2P struct {
	*naive
	woken bool
	seen  int // events as of the end of the last Rest
}

func (ep *naive) P2P() transport.P2P { return ep.p2ps[ep.rank] }

func (p *naiveP2P) TryPut(to int, m *transport.Message) (n int, ok bool, err error) {
	p.locked(func() {
		stream := [2]int{p.rank, to}
		if ok = len(p.letters[stream]) == 0; ok {
			n = p.room(m)
			part := *m
			part.Bytes = m.Bytes[:n]
			if p.copies {
				part.Bytes = bytes.Clone(part.Bytes)
			}
			p.letters[stream] = append(p.letters[stream], part)
		}
	})
	return n, ok, nil
}

func (p *naiveP2P) TryDrained(to int) (drained bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.letters[[2]int{p.rank, to}]) == 0
}

func (p *naiveP2P) TryNext(from int) (view transport.Message, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stream := [2]int{from, p.rank}
	if ok = len(p.letters[stream]) > 0 && (p.failure == nil || p.viewed[stream]); ok {
		view, p.viewed[stream] = p.letters[stream][0], true
	}
	return view, ok, nil
}

func (p *naiveP2P) Take(from int) {
	p.locked(func() {
		stream := [2]int{from, p.rank}
		p.letters[stream], p.viewed[stream] = nil, false
	})
}

func (p *naiveP2P) Rest(ready func() bool, _ bool) {
	for {
		p.mu.Lock()
		changes := p.changes
		p.mu.Unlock()
		if ready() {
			p.locked(func() { p.waitsFor[p.rank] = 0 })
			return
		}
		p.mu.Lock()
		for !p.woken && p.seen == p.events && p.changes == changes {
			p.changed.Wait()
		}
		news := p.woken || p.seen != p.events
		p.woken, p.seen = false, p.events
		p.mu.Unlock()
		if news {
			return
		}
	}
}

func (p *naiveP2P) WaitFor(peer int) {
	p.locked(func() { p.waitsFor[p.rank], p.gaveUp[p.rank] = peer+1, false })
}

func (p *naiveP2P) Behind(peer int) int {
	p.locked(func() { p.gaveUp[p.rank] = true })
	return p.behind(peer, func(who, on int) bool { return len(p.letters[[2]int{on, who}]) == 0 })
}

func (p *naiveP2P) behind(peer int, waits func(who, on int) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.n {
		if on := p.waitsFor[peer]; on > 0 && waits(peer, on-1) {
			peer = on - 1
		}
	}
	return peer
}

func (p *naiveP2P) AwaitedBy(peer int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on := p.waitsFor[peer] - 1; on >= 0 && len(p.letters[[2]int{on, peer}]) == 0 {
		return on
	}
	return -1
}

// goesOn ends the wait that this rank gave up.
func (ep *naive) goesOn() {
	if ep.gaveUp[ep.rank] {
		ep.waitsFor[ep.rank] = 0
	}
}

func (p *naiveP2P) Wake() { p.locked(func() { p.woken = true }) }

func (p *naiveP2P) Lost(peer int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed[p.rank]:
		return transport.ErrClosed
	case peer < 0:
		for r, closed := range p.closed {
			if r != p.rank && !closed {
				return nil
			}
		}
		return &transport.PeerLostError{Rank: (p.rank + 1) % p.n}
	case p.closed[peer]:
		return &transport.PeerLostError{Rank: peer}
	}
	return nil
}

func (p *naiveP2P) TryWithdraw(to int) (taken, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stream := [2]int{p.rank, to}
	taken = len(p.letters[stream]) == 0
	if ok = taken || p.copies || !p.viewed[stream]; ok && !p.copies {
		p.letters[stream] = nil // no rank waits for it
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
			return nil, errors.New("invalid members")
		}
	}
	key := fmt.Sprint(number, members)
	if ep.further[key] == nil && me >= 0 {
		ep.further[key] = newNaive(len(members), ep.naiveKind)
	}
	open := ep.further[key]
	switch {
	case me < 0:
		return nil, errors.New("no members")
	case ctx.Err() != nil:
		if open[me] != nil {
			open[me].Fail(&transport.Failure{Kind: transport.FailureAborted, By: me, Text: ctx.Err().Error()})
		}
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
