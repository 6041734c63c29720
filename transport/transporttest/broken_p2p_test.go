package transporttest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/goccl/goccl/transport"
)

// brokenP2P are transports with one defect in P2P, Groups or NoSpin.
var brokenP2P = []broken{
	{check: "P2P/Order", what: "loses the clock", says: "a Total of",
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return clocklessP2P{p} })},
	{check: "P2P/Order", what: "sees room late", hangs: true,
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return undrainedP2P{p} })},
	{check: "P2P/Drain", what: "is always drained", says: "is true before", races: true,
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return drainedP2P{p} })},
	{check: "P2P/Beside", what: "shares the streams of calls", says: "a Total of",
		wrap: func(ep *naive) transport.Endpoint { return &mixedStreams{naive: ep} }},
	{check: "P2P/Wake", what: "Wake does nothing", hangs: true,
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return deafP2P{p} })},
	{check: "Interrupt/Failure", what: "Fail does not end Rest", says: "failure meets Rest", hangs: true,
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return deafRest{p} })},
	{check: "Interrupt/Departure", what: "Lost never returns an error", says: "departure meets Rest", hangs: true,
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return losesNone{p} })},
	{check: "P2P/Left", what: "Close takes messages back", says: "is not there",
		wrap: func(ep *naive) transport.Endpoint { return takesBack{ep} }},
	{check: "P2P/Behind", what: "returns the rank that it waits for itself", hangs: true,
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return shortSighted{p} })},
	{check: "P2P/Behind", what: "knows for whom no other rank waits", says: "AwaitedBy(1) is -1",
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return selfish{p} })},
	{check: "P2P/LostAny", what: "loses all with the first", says: "although ranks are left",
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return pessimist{p} })},
	{check: "P2P/LostAny", what: "loses no rank in particular", says: "although all other ranks have left",
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return optimist{p} })},
	{check: "P2P/Served", what: "follows a rank that was sent something", says: "stays in place",
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return credulousP2P{p} })},
	{check: "P2P/GaveUp", what: "forgets a wait as it ends", says: "has just given up",
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return forgetfulP2P{p} })},
	{check: "P2P/GaveUp", what: "never forgets a wait", says: "entered a call since",
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return resentfulP2P{p} })},
	{check: "P2P/Withdraw", what: "withdraws what is viewed", says: "viewed while it is withdrawn", races: true,
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return hastyP2P{p} })},
	{check: "P2P/Withdraw", what: "withdraws what is viewed of a rank that has left", says: "as its receiver leaves", races: true,
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return disloyalP2P{p} })},
	{check: "P2P/Withdraw", what: "shows messages after a failure", says: "although the group has failed", kind: copies,
		wrap: withP2P(func(p *naiveP2P) transport.P2P { return undeterredP2P{p} })},

	{check: "Group/Members", what: "sorts the members", says: "returns rank",
		wrap: func(ep *naive) transport.Endpoint { return sortedGroup{ep} }},
	{check: "Group/Apart", what: "a failure reaches the outer group", says: "the group has failed",
		wrap: func(ep *naive) transport.Endpoint { return tiedGroup{ep} }},
	{check: "Group/Refused", what: "ignores the context", says: "no error instead of",
		wrap: func(ep *naive) transport.Endpoint { return deafGroup{ep} }},
	{check: "Group/GivenUp", what: "a member gives up in silence", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return silentGroup{ep} }},
	{check: "Interrupt/Cancel", what: "Group ignores the context", says: "cancelled context meets Group",
		wrap: func(ep *naive) transport.Endpoint { return deafGroup{ep} }},
	{check: "Interrupt/Departure", what: "Group accepts members that have left", says: "departure meets Group",
		wrap: func(ep *naive) transport.Endpoint { return blindGroup{ep} }},
	{check: "Group/Leaks", what: "keeps its groups", says: "garbage: false",
		wrap: func(ep *naive) transport.Endpoint { return &hoarder{naive: ep} }},
	{check: "NoSpin", what: "a rank with NoSpin does not wait", says: "panic",
		wrap: func(ep *naive) transport.Endpoint { return hastyNoSpin{ep} }},
}

// otherP2P is an endpoint with another P2P.
type otherP2P struct {
	*naive
	p2p transport.P2P
}

func (ep otherP2P) P2P() transport.P2P { return ep.p2p }

func withP2P(make func(p *naiveP2P) transport.P2P) func(*naive) transport.Endpoint {
	return func(ep *naive) transport.Endpoint { return otherP2P{ep, make(ep.p2ps[ep.rank])} }
}

type clocklessP2P struct{ *naiveP2P }

func (p clocklessP2P) TryPut(to int, m *transport.Message) (int, bool, error) {
	lost := *m
	lost.Clock = 0
	return p.naiveP2P.TryPut(to, &lost)
}

type undrainedP2P struct{ *naiveP2P }

func (undrainedP2P) TryDrained(int) bool { return false }

type drainedP2P struct{ *naiveP2P }

func (drainedP2P) TryDrained(int) bool { return true }

// mixedStreams sends its first P2P message in the stream of calls, and makes the calls
// wait for it.
type mixedStreams struct {
	*naive
	mixed bool
}

func (ep *mixedStreams) P2P() transport.P2P { return mixedP2P{ep.p2ps[ep.rank], ep} }

func (ep *mixedStreams) Put(to int, m *transport.Message) (n int, err error) {
	ep.locked(func() {
		for !ep.mixed {
			ep.changed.Wait()
		}
		stream := [2]int{ep.rank, to}
		ep.streams[stream], n = append(ep.streams[stream], *m), len(m.Bytes)
	})
	return n, nil
}

type mixedP2P struct {
	*naiveP2P
	ep *mixedStreams
}

func (p mixedP2P) TryPut(to int, m *transport.Message) (n int, ok bool, err error) {
	p.locked(func() {
		if ok = !p.ep.mixed; ok {
			stream := [2]int{p.rank, to}
			p.streams[stream], n = append(p.streams[stream], *m), len(m.Bytes)
			p.ep.mixed = true
		}
	})
	if ok {
		return n, ok, nil
	}
	return p.naiveP2P.TryPut(to, m)
}

type deafP2P struct{ *naiveP2P }

func (deafP2P) Wake() {}

type deafRest struct{ *naiveP2P }

func (p deafRest) Rest(ready func() bool, noSpin bool) {
	for again := true; again; again = p.Failed() && !ready() {
		p.naiveP2P.Rest(ready, noSpin)
	}
}

type losesNone struct{ *naiveP2P }

func (losesNone) Lost(int) error { return nil }

type takesBack struct{ *naive }

func (ep takesBack) Close() error {
	ep.locked(func() {
		for q := range ep.n {
			delete(ep.letters, [2]int{ep.rank, q})
		}
	})
	return ep.naive.Close()
}

type shortSighted struct{ *naiveP2P }

func (shortSighted) Behind(peer int) int { return peer }

type selfish struct{ *naiveP2P }

func (selfish) AwaitedBy(int) int { return -1 }

type pessimist struct{ *naiveP2P }

func (p pessimist) Lost(peer int) error { return p.naiveP2P.Lost(max(peer, 1)) }

type optimist struct{ *naiveP2P }

func (p optimist) Lost(peer int) error {
	if peer < 0 {
		return nil
	}
	return p.naiveP2P.Lost(peer)
}

type credulousP2P struct{ *naiveP2P }

func (p credulousP2P) Behind(peer int) int {
	return p.behind(peer, func(int, int) bool { return true })
}

type forgetfulP2P struct{ *naiveP2P }

func (p forgetfulP2P) Rest(ready func() bool, noSpin bool) {
	p.naiveP2P.Rest(ready, noSpin)
	p.WaitFor(-1)
}

type resentfulP2P struct{ *naiveP2P }

func (p resentfulP2P) Behind(peer int) int {
	return p.behind(peer, func(who, on int) bool { return len(p.letters[[2]int{on, who}]) == 0 })
}

type hastyP2P struct{ *naiveP2P }

func (hastyP2P) TryWithdraw(int) (taken, ok bool) { return false, true }

type disloyalP2P struct{ *naiveP2P }

func (p disloyalP2P) TryWithdraw(to int) (taken, ok bool) {
	if _, left := errors.AsType[*transport.PeerLostError](p.Lost(to)); left {
		return false, true
	}
	return p.naiveP2P.TryWithdraw(to)
}

type undeterredP2P struct{ *naiveP2P }

func (p undeterredP2P) TryNext(from int) (view transport.Message, ok bool, err error) {
	p.locked(func() {
		if letters := p.letters[[2]int{from, p.rank}]; len(letters) > 0 {
			view, ok = letters[0], true
		}
	})
	return view, ok, nil
}

type sortedGroup struct{ *naive }

func (ep sortedGroup) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return ep.naive.Group(ctx, number, slices.Sorted(slices.Values(members)))
}

type tiedGroup struct{ *naive }

// tied is an endpoint whose failure is also recorded at another.
type tied struct {
	transport.Endpoint
	outer *naive
}

func (ep tiedGroup) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	inner, err := ep.naive.Group(ctx, number, members)
	return tied{inner, ep.naive}, err
}

func (ep tied) Fail(f *transport.Failure) *transport.Failure {
	ep.outer.Fail(f)
	return ep.Endpoint.Fail(f)
}

type deafGroup struct{ *naive }

func (ep deafGroup) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return ep.naive.Group(context.WithoutCancel(ctx), number, members)
}

type silentGroup struct{ *naive }

func (ep silentGroup) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return ep.naive.Group(ctx, number, members)
}

type blindGroup struct{ *naive }

func (ep blindGroup) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	inner, err := ep.naive.Group(ctx, number, members)
	if _, gone := errors.AsType[*transport.PeerLostError](err); gone {
		return newNaive(len(members), ep.naiveKind)[slices.Index(members, ep.rank)], nil
	}
	return inner, err
}

type hoarder struct {
	*naive
	mu   sync.Mutex
	kept []transport.Endpoint
}

func (ep *hoarder) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	inner, err := ep.naive.Group(ctx, number, members)
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.kept = append(ep.kept, inner)
	return inner, err
}

type hastyNoSpin struct{ *naive }

func (ep hastyNoSpin) Enter(e *transport.Arrival) (transport.Role, error) {
	if !e.NoSpin {
		return ep.naive.Enter(e)
	}
	ep.locked(func() { ep.publish(e) })
	return transport.RunOwn, nil
}
