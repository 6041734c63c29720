package transporttest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/transport"
)

// The checks Interrupt and Reached are a table of events and waits. In Interrupt an event
// meets a wait that would not end without it; the outcome is the event's, except in the cells
// that exceptions lists. In Reached the wait's condition is true already; the outcome is success,
// except in the cells that reachedExceptions lists.

// wait is a way to wait for a rank, the peer.
type wait struct {
	name string
	// inside: the wait begins when all ranks have entered the call, which is Exposed.
	// Otherwise the peer does not enter the call.
	inside bool
	// has reports whether the transport has this wait; nil: it always has.
	has func(ep transport.Endpoint) bool
	// before is what all ranks do first inside the call. It may be nil.
	before func(r *rank)
	// start, which may be nil, is what the waiting rank does next; it does not wait. block waits.
	start func(r *rank, e *transport.Arrival, peer int)
	block func(r *rank, e *transport.Arrival, peer int) error
	// Of a wait in Reached: either supply is what the peer does to make its condition true, or it
	// is mutual: its condition is true when all other ranks have called block, even if they gave
	// up.
	supply func(r *rank, e *transport.Arrival, waiter int)
	mutual bool
	// optional: block may return at once, without an error.
	optional option
}

// option tells when a wait is optional.
type option int

const (
	never  option = iota
	late          // unless the event came before
	always        // also if the event came before
)

var waits = []wait{
	{name: "Enter", mutual: true, block: enterWith(func(*transport.Arrival) {})},
	{name: "Enter (Exposed)", mutual: true, block: enterWith(func(e *transport.Arrival) { e.Exposed = true })},
	{name: "Enter (AnyRunner)", block: enterWith(func(e *transport.Arrival) {
		e.Exposed, e.AnyRunner, e.Work = true, true, workAmounts[3]
	})},
	{name: "Enter (Eager)", mutual: true, has: hasRegions, block: enterEager},
	{name: "Enter (Staged)", mutual: true, has: hasStaging, start: putInput,
		block: enterWith(func(e *transport.Arrival) { e.Staged = true })},
	{name: "Enter (after a refused call)", block: refuseAndEnter},
	{name: "Complete", inside: true, mutual: true,
		block: func(r *rank, _ *transport.Arrival, _ int) error { return r.Complete() }},
	{name: "Next", inside: true, supply: putByte,
		block: func(r *rank, _ *transport.Arrival, peer int) error { _, err := r.Next(peer); return err }},
	{name: "Drain", inside: true, start: putByte, supply: takeByte,
		block: func(r *rank, _ *transport.Arrival, peer int) error { return r.Drain(peer) }},
	{name: "Put", inside: true, block: putAll},
	{name: "Flip", inside: true, mutual: true, has: hasStaging, start: putInput, block: flip},
	{name: "second Flip", inside: true, mutual: true, has: hasStaging, before: (*rank).flip, start: putInput, block: flip},
	{name: "Region", inside: true, optional: always, has: hasRegions, block: makeRegion},
	{name: "Rest", block: rest},
	{name: "Group", optional: late, has: hasGroups, block: formAll},
}

func hasStaging(ep transport.Endpoint) bool { return ep.Staging() != nil }

func hasRegions(ep transport.Endpoint) bool {
	_, ok := ep.(transport.Regions)
	return ok && hasStaging(ep)
}

func hasGroups(ep transport.Endpoint) bool {
	_, ok := ep.(transport.Groups)
	return ok
}

func enterWith(change func(e *transport.Arrival)) func(*rank, *transport.Arrival, int) error {
	return func(r *rank, e *transport.Arrival, _ int) error {
		change(e)
		_, err := r.Enter(e)
		return err
	}
}

// enterEager enters an Eager call that shows payloads, because no rank has a region.
func enterEager(r *rank, e *transport.Arrival, _ int) error {
	e.Exposed, e.Eager, e.Payload = true, true, data(100, r.number)
	_, err := r.Enter(e)
	return err
}

// refuseAndEnter refuses call e and enters the next, which e becomes.
func refuseAndEnter(r *rank, e *transport.Arrival, _ int) error {
	r.Reject(e.Seq, reason(r.number, e.Seq))
	r.seq++
	e.Seq = r.seq
	_, err := r.Enter(e)
	return err
}

func putByte(r *rank, e *transport.Arrival, to int) {
	m := newMessage(e.Seq, r.number, to, 1, 0)
	r.putPart(to, &m)
}

func takeByte(r *rank, e *transport.Arrival, from int) {
	r.receivePart(from, newMessage(e.Seq, from, r.number, 1, 0))
	r.Take(from)
}

// putAll fills the stream. If that cannot be done it waits until all is taken.
func putAll(r *rank, e *transport.Arrival, peer int) error {
	for i := range 1000 {
		m := newMessage(e.Seq, r.number, peer, 64<<10, i)
		if _, err := r.Put(peer, &m); err != nil {
			return err
		}
	}
	return r.Drain(peer)
}

func putInput(r *rank, _ *transport.Arrival, _ int) {
	r.Staging().PutInput(data(1, r.number), 0, 0)
	r.Staging().PutResult(0, 1)
}

func flip(r *rank, _ *transport.Arrival, _ int) error { return r.Staging().Flip() }

func makeRegion(r *rank, _ *transport.Arrival, _ int) error {
	_, err := r.Endpoint.(transport.Regions).Region(64)
	return err
}

// rest rests until the group has failed or the peer is lost.
func rest(r *rank, e *transport.Arrival, peer int) error {
	for {
		if r.Failed() {
			return transport.ErrFailed
		}
		if err := r.P2P().Lost(peer); err != nil {
			return err
		}
		r.checkStop()
		r.P2P().Rest(returnFalse, (int(e.Seq)+r.number)%2 == 0)
	}
}

func returnFalse() bool { return false }

// formAll forms a group of all ranks, in which the peer is rank 0.
func formAll(r *rank, e *transport.Arrival, peer int) error {
	members := []int{peer}
	for q := range r.size {
		if q != peer {
			members = append(members, q)
		}
	}
	ep, err := r.formGroup(e.Ctx, 1, members)
	if err == nil {
		err = errors.Join(ep.Close(), ep.Free())
	}
	return err
}

// event is something that ends a wait.
type event struct {
	name string
	// happen is what the peer does; nil: time does it.
	happen  func(peer *rank, cancel func())
	outcome outcome
}

// meeting is the pair of an event and a wait, on one rank.
type meeting struct {
	*rank
	e    *transport.Arrival
	wait *wait
	peer int
}

// outcome fails unless err is what a wait has to return.
type outcome func(m *meeting, err error)

var (
	failure = &event{
		name: "failure",
		happen: func(peer *rank, _ func()) {
			by := peer
			if peer.rnd.IntN(2) == 0 {
				by = peer.group.ranks[0] // any goroutine may record a failure at any endpoint
			}
			by.Fail(failureBy(peer.number, 0))
		},
		outcome: wantError(transport.ErrFailed),
	}
	cancelled = &event{
		name:    "cancelled context",
		happen:  func(_ *rank, cancel func()) { cancel() },
		outcome: wantError(context.Canceled),
	}
	deadline  = &event{name: "deadline", outcome: wantError(context.DeadlineExceeded)}
	timeout   = &event{name: "timeout", outcome: checkTimedOut}
	departure = &event{
		name:    "departure",
		happen:  func(peer *rank, _ func()) { peer.Close() },
		outcome: func(m *meeting, err error) { checkLost(err, m.peer) },
	}
	refusal = &event{
		name:    "refusal",
		happen:  func(peer *rank, _ func()) { peer.Reject(peer.seq, reason(peer.number, peer.seq)) },
		outcome: func(m *meeting, err error) { checkRefusedBy(err, m.e.Seq, m.peer) },
	}
	ownClose = &event{
		name: "closing of the own endpoint",
		happen: func(peer *rank, _ func()) {
			for _, r := range peer.group.ranks[:peer.number] {
				r.Close()
			}
		},
		outcome: func(m *meeting, err error) { checkClosed(m, err, m.peer) },
	}
)

type cell struct {
	event *event
	wait  string
}

// exceptions are the outcomes that are not the event's. nil: the event does not end the
// wait, or cannot meet it.
var exceptions = map[cell]outcome{
	// Rest has neither a context nor a timeout, and a refusal ends it without a trace.
	{cancelled, "Rest"}: nil,
	{deadline, "Rest"}:  nil,
	{timeout, "Rest"}:   nil,
	{refusal, "Rest"}:   nil,
	// Group is outside of calls: it has a context, whose deadline is its timeout.
	{cancelled, "Group"}: checkCancelledOrAborted,
	{deadline, "Group"}:  checkDeadlineOrTimeout,
	{timeout, "Group"}:   nil,
	{refusal, "Group"}:   nil,
	{departure, "Group"}: func(_ *meeting, err error) { checkLost(err, 0) },
	{ownClose, "Group"}:  func(m *meeting, err error) { checkClosed(m, err, 0) },
	// The peer would have to refuse two calls: Reject/Runs.
	{refusal, "Enter (after a refused call)"}: nil,
}

// reachedExceptions are the outcomes that are not success.
var reachedExceptions = map[cell]outcome{
	// Before memory is touched a failure wins over all ranks having entered.
	{failure, "Enter (Exposed)"}: wantError(transport.ErrFailed),
}

func (ev *event) on(wt *wait) outcome {
	if out, ok := exceptions[cell{ev, wt.name}]; ok {
		return out
	}
	if ev == refusal && wt.inside {
		return nil // the peer has entered the call
	}
	return ev.outcome
}

func wantError(want error) outcome { return func(_ *meeting, err error) { expectError(err, want) } }

// errorAs returns the T in err, and fails if err has none.
func errorAs[T error](err error) T {
	e, ok := errors.AsType[T](err)
	if !ok {
		failUnexpected(err, "%T", e)
	}
	return e
}

// checkLost fails unless err is a *PeerLostError for rank.
func checkLost(err error, rank int) {
	if e, ok := errors.AsType[*transport.PeerLostError](err); !ok || e.Rank != rank {
		failUnexpected(err, "*PeerLostError for rank %d", rank)
	}
}

// checkClosed is the outcome of ownClose, which closes the endpoints of all waiting ranks: one may
// notice first that another has left, but not that the peer has.
func checkClosed(m *meeting, err error, peer int) {
	if e, ok := errors.AsType[*transport.PeerLostError](err); !ok || m.size == 2 || e.Rank == peer {
		expectError(err, transport.ErrClosed)
	}
}

// checkCancelledOrAborted is the outcome of a Group that is cancelled on all ranks: one may hear
// first that another gave up.
func checkCancelledOrAborted(m *meeting, err error) {
	if _, ok := errors.AsType[*transport.AbortedError](err); !ok || m.size == 2 {
		expectError(err, context.Canceled)
	}
}

// checkDeadlineOrTimeout is the outcome of a Group whose context's deadline passes, before it
// waits or then.
func checkDeadlineOrTimeout(_ *meeting, err error) {
	if !errors.Is(err, context.DeadlineExceeded) {
		errorAs[*transport.TimeoutError](err)
	}
}

// checkTimedOut fails unless err is a *TimeoutError that names the peer.
func checkTimedOut(m *meeting, err error) {
	t := errorAs[*transport.TimeoutError](err)
	missing, behind := []int{m.peer}, []int(nil)
	if m.wait.inside {
		missing, behind = behind, missing
	}
	if !slices.Equal(t.Missing, missing) || !slices.Equal(t.Behind, behind) || t.Seq != m.e.Seq || t.After < m.e.Limit.After {
		fail("the error is %+v, but rank %d is absent in call %d, which has a timeout of %v",
			*t, m.peer, m.e.Seq, m.e.Limit.After)
	}
}

// firstLimit is the shortest time of a call that ends by time.
const firstLimit = 10 * time.Millisecond
