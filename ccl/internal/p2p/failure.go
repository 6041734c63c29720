package p2p

import (
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/transport"
)

// check ends the transfers that cannot go on.
func (e *Engine) check() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.checkAll()
}

// checkAll is check for a caller that holds the lock.
func (e *Engine) checkAll() {
	switch {
	case e.stopped || e.group.Closed():
		e.endAll(transport.ErrClosed)
		return
	case e.ep.Failed():
		e.endAll(e.group.FailureCause())
		return
	}

	now := time.Now()
	var next time.Time
	var lost []*Transfer
	e.each(func(t *Transfer) {
		if t.cause != nil {
			return // it waits until its buffer is withdrawn
		}
		if !t.warnAt.IsZero() && !now.Before(t.warnAt) { // also where this look comes too late for the transfer
			e.warn(t, now)
		}
		if err := e.overdue(t, now); err != nil {
			e.giveUp(t, err)
			return
		}
		if e.lost(t) != nil {
			lost = append(lost, t)
		}
		next = earlier(next, t.alarm())
	})

	if len(lost) > 0 {
		for e.move() { // messages that a lost rank has sent may still arrive
		}
		for _, t := range lost {
			if err := e.lost(t); err != nil && !t.ended { // nil: it has a message now, of a rank that is there
				// Has the other rank given up a wait for this one, in a circle? Then others see this one's too.
				if t.Waits = t.Waits && t.Peer != AnySource && e.waitsForThis(t.Peer); t.Waits {
					e.link.Behind(t.Peer)
					e.timedOut = true
				}
				e.noteOthers(t)
				e.giveUp(t, err)
			}
		}
	}
	e.setTimer(next, now)
}

// lost returns why the other rank of a transfer is lost, nil if it is not. A receive from
// AnySource is lost when a rank has died, or all ranks are lost.
func (e *Engine) lost(t *Transfer) error {
	switch from := e.sourceOf(t); from {
	case e.rank:
		return nil
	case AnySource:
		return e.link.Lost(-1)
	default:
		return e.link.Lost(from)
	}
}

// sourceOf returns the other rank of a transfer. It is AnySource as long as such a receive has no
// message.
func (e *Engine) sourceOf(t *Transfer) int {
	if t.Peer == AnySource && t.visible {
		return slices.IndexFunc(e.incoming, func(in incoming) bool { return in.recv == t })
	}
	return t.Peer
}

// mayBeLost is lost for a caller that does not make progress. It also notes whether t begins to
// wait in a group that has not failed. It reports true as well if shared memory has vanished, which
// the goroutine that makes progress will find.
func (e *Engine) mayBeLost(t *Transfer) (yes bool) {
	if e.guarded {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { yes = yes || recover() != nil }()
	}
	t.Waits = !e.ep.Failed()
	return e.lost(t) != nil
}

// giveUp ends a transfer that did not succeed. If the other rank may see part of the message
// and is not lost, the group fails: nothing else takes the message away from it. After a
// receive has failed because its sender is lost, nothing more of this sender is received: it
// may still send while it closes, and a later receive would get the message of this one.
func (e *Engine) giveUp(t *Transfer, err error) {
	about := failure.WithoutCause(err)
	if errors.Is(about, transport.ErrClosed) { // meanwhile: the others learn that this rank has left
		e.endAll(err)
		return
	}
	if _, timeout := errors.AsType[*transport.TimeoutError](about); timeout {
		if e.ep.Failed() { // meanwhile: the ranks that err names may have stopped waiting because of it
			e.endAll(e.group.FailureCause())
			return
		}
		e.timedOut = true
	}
	_, lost := errors.AsType[*transport.PeerLostError](about)
	if !lost && t.visible {
		e.ep.Fail(e.failure(err))
		e.endAll(err)
		return
	}

	for from := range e.incoming {
		in := &e.incoming[from]
		isLost := lost && !t.Sending && (t.Peer == from || t.Peer == AnySource && e.isLost(from))
		if in.recv == t || isLost && in.recv == nil {
			*in = incoming{lost: true}
		}
	}
	e.withdraw(t, err)
}

// fail fails the group.
func (e *Engine) fail(err error) {
	e.ep.Fail(e.failure(err))
	e.endAll(e.group.FailureCause())
}

// failBy fails the group by a recovered panic, unless shared memory did not cause it.
func (e *Engine) failBy(v any) {
	err := e.group.Fault(v)
	if err == nil {
		panic(v)
	}
	f := e.failure(err)
	f.Seq = 1 // not 0, as of a rank that gives up: it has found this
	e.ep.Fail(f)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.suspect = true
}

// failure returns the error of a transfer as the failure of the group.
func (e *Engine) failure(err error) *transport.Failure {
	f := &transport.Failure{Kind: transport.FailureAborted, By: e.rank, Text: err.Error(), Cause: err}
	if late, ok := errors.AsType[*transport.TimeoutError](failure.WithoutCause(err)); ok {
		f.Kind, f.Ranks, f.After = transport.FailureStuck, late.Behind, late.After
	}
	return f
}

// endAll ends all transfers, now and from now on. A send whose buffer another rank reads ends
// as soon as that rank has read it.
func (e *Engine) endAll(cause error) {
	if e.failed == nil {
		e.failed = cause
	}
	e.each(func(t *Transfer) {
		if t.cause == nil {
			e.withdraw(t, cause)
		}
	})
	clear(e.incoming)
}
