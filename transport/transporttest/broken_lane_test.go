package transporttest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/goccl/goccl/transport"
)

// brokenLanes are transports whose lanes, groups or patience are wrong in one point.
var brokenLanes = []broken{
	{check: "Lane/Order", what: "loses the clock", says: "a Total of",
		wrap: withLane(func(l *naiveLane) transport.P2P { return clocklessLane{l} })},
	{check: "Lane/Order", what: "sees room late", says: hangs,
		wrap: withLane(func(l *naiveLane) transport.P2P { return noDrainLane{l} })},
	{check: "Lane/Drain", what: "is always drained", says: "is true before", races: true,
		wrap: withLane(func(l *naiveLane) transport.P2P { return drainedLane{l} })},
	{check: "Lane/Beside", what: "shares the streams of calls", says: "a Total of",
		wrap: func(ep *naive) transport.Endpoint { return &mixedStreams{naive: ep} }},
	{check: "Lane/Wake", what: "Wake does nothing", says: hangs,
		wrap: withLane(func(l *naiveLane) transport.P2P { return deafLane{l} })},
	{check: "Lane/Events", what: "Fail wakes no lane", says: hangs,
		wrap: func(ep *naive) transport.Endpoint { return silentFailure{ep} }},
	{check: "Lane/Events", what: "nobody is ever lost", says: hangs,
		wrap: withLane(func(l *naiveLane) transport.P2P { return losesNobody{l} })},
	{check: "Lane/Left", what: "Close takes messages back", says: "is not there",
		wrap: func(ep *naive) transport.Endpoint { return takesBack{ep} }},
	{check: "Lane/Behind", what: "blames whom it waits for itself", says: hangs,
		wrap: withLane(func(l *naiveLane) transport.P2P { return shortSighted{l} })},
	{check: "Lane/Served", what: "believes that a rank waits for what was sent to it", says: "and that does not go on",
		wrap: withLane(func(l *naiveLane) transport.P2P { return credulousLane{l} })},
	{check: "Lane/Withdraw", what: "withdraws what is viewed", says: "while its sender withdraws", races: true,
		wrap: withLane(func(l *naiveLane) transport.P2P { return hastyLane{l} })},
	{check: "Lane/Withdraw", what: "withdraws what is viewed of a rank that has left", says: "as its receiver leaves", races: true,
		wrap: withLane(func(l *naiveLane) transport.P2P { return disloyalLane{l} })},
	{check: "Lane/Withdraw", what: "shows messages after a failure", says: "although the group has failed", kind: copies,
		wrap: withLane(func(l *naiveLane) transport.P2P { return undeterredLane{l} })},

	{check: "Group/Members", what: "sorts the members", says: "says that it is rank",
		wrap: func(ep *naive) transport.Endpoint { return sortedGroup{ep} }},
	{check: "Group/Apart", what: "a failure reaches the outer group", says: "the group has failed",
		wrap: func(ep *naive) transport.Endpoint { return tiedGroup{ep} }},
	{check: "Group/Refused", what: "is deaf to the context", says: "no error instead of",
		wrap: func(ep *naive) transport.Endpoint { return deafGroup{ep} }},
	{check: "Group/Gone", what: "waits for who has left", says: "no error instead of",
		wrap: func(ep *naive) transport.Endpoint { return silentClose{ep} }},
	{check: "Group/Leaks", what: "keeps its groups", says: "garbage: false",
		wrap: func(ep *naive) transport.Endpoint { return &hoarder{naive: ep} }},
	{check: "Patient", what: "the patient do not wait", says: "panic",
		wrap: func(ep *naive) transport.Endpoint { return hastyPatient{ep} }},
}

// otherLane is an endpoint with another lane.
type otherLane struct {
	*naive
	lane transport.P2P
}

func (ep otherLane) P2P() transport.P2P { return ep.lane }

func withLane(lane func(l *naiveLane) transport.P2P) func(*naive) transport.Endpoint {
	return func(ep *naive) transport.Endpoint { return otherLane{ep, lane(ep.lanes[ep.rank])} }
}

type clocklessLane struct{ *naiveLane }

func (l clocklessLane) TryPut(to int, m *transport.Message) (int, bool, error) {
	lost := *m
	lost.Clock = 0
	return l.naiveLane.TryPut(to, &lost)
}

type noDrainLane struct{ *naiveLane }

func (noDrainLane) TryDrained(int) bool { return false }

type drainedLane struct{ *naiveLane }

func (drainedLane) TryDrained(int) bool { return true }

// mixedStreams lets the first message of its lane go among those of calls, and
// makes the calls wait for it.
type mixedStreams struct {
	*naive
	mixed bool
}

func (ep *mixedStreams) P2P() transport.P2P { return mixedLane{ep.lanes[ep.rank], ep} }

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

type mixedLane struct {
	*naiveLane
	ep *mixedStreams
}

func (l mixedLane) TryPut(to int, m *transport.Message) (n int, ok bool, err error) {
	l.locked(func() {
		if ok = !l.ep.mixed; ok {
			stream := [2]int{l.rank, to}
			l.streams[stream], n = append(l.streams[stream], *m), len(m.Bytes)
			l.ep.mixed = true
		}
	})
	if ok {
		return n, ok, nil
	}
	return l.naiveLane.TryPut(to, m)
}

type deafLane struct{ *naiveLane }

func (deafLane) Wake() {}

type losesNobody struct{ *naiveLane }

func (losesNobody) Lost(int) error { return nil }

type takesBack struct{ *naive }

func (ep takesBack) Close() error {
	ep.locked(func() {
		for q := range ep.n {
			delete(ep.letters, [2]int{ep.rank, q})
		}
	})
	return ep.naive.Close()
}

type shortSighted struct{ *naiveLane }

func (shortSighted) Behind(peer int) int { return peer }

type credulousLane struct{ *naiveLane }

func (l credulousLane) Behind(peer int) int {
	return l.behind(peer, func(int, int) bool { return true })
}

type hastyLane struct{ *naiveLane }

func (hastyLane) TryWithdraw(int) (taken, ok bool) { return false, true }

type disloyalLane struct{ *naiveLane }

func (l disloyalLane) TryWithdraw(to int) (taken, ok bool) {
	if _, left := errors.AsType[*transport.PeerLostError](l.Lost(to)); left {
		return false, true
	}
	return l.naiveLane.TryWithdraw(to)
}

type undeterredLane struct{ *naiveLane }

func (l undeterredLane) TryNext(from int) (view transport.Message, ok bool, err error) {
	l.locked(func() {
		if letters := l.letters[[2]int{from, l.rank}]; len(letters) > 0 {
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

// tied is an endpoint whose failure is that of another, too.
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

type hastyPatient struct{ *naive }

func (ep hastyPatient) Enter(e *transport.Arrival) (transport.Role, error) {
	if !e.NoSpin {
		return ep.naive.Enter(e)
	}
	ep.locked(func() { ep.publish(e) })
	return transport.RunOwn, nil
}
