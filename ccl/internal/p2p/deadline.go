package p2p

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// wake makes the goroutine that makes progress check all transfers.
func (e *Engine) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopped {
		e.link.Wake()
	}
}

// setDeadline sets the deadline of a new transfer, and when a receive from AnySource warns.
func (e *Engine) setDeadline(t *Transfer) {
	if t.Timeout == 0 {
		return
	}
	now := time.Now()
	if t.Timeout > 0 {
		t.deadline = now.Add(t.Timeout)
	}
	if t.Peer == AnySource {
		t.warnAt = now.Add(t.Timeout.Abs() / 2)
	}
	e.setTimer(t.alarm(), now)
}

// alarm returns when a transfer has to be looked at, zero if never.
func (t *Transfer) alarm() time.Time { return earlier(t.warnAt, t.deadline) }

// earlier returns the earlier time of those that are not zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// setTimer calls wake at the next deadline, unless it is zero or the timer ends earlier.
func (e *Engine) setTimer(next, now time.Time) {
	if next.IsZero() || !e.timerAt.IsZero() && !next.Before(e.timerAt) && now.Before(e.timerAt) {
		return
	}
	e.timerAt = next
	if e.timer == nil {
		e.timer = interleave.AfterFunc(next.Sub(now), e.wake)
	} else {
		e.timer.Reset(next.Sub(now))
	}
}

// watch calls wake when the context of a transfer ends. The first context is watched until
// Stop, since most transfers share it. It must be a pointer: others may not be comparable.
func (e *Engine) watch(t *Transfer) {
	switch ctx := t.Ctx; {
	case ctx.Done() == nil || ctx == e.sharedCtx:
	case e.sharedCtx == nil && reflect.TypeOf(ctx).Kind() == reflect.Pointer:
		e.sharedCtx, e.unwatch = ctx, interleave.AfterContext(ctx, e.wake)
	default:
		t.unwatch = interleave.AfterContext(ctx, e.wake)
	}
}

// overdue returns why a transfer must end now: its context has ended, or its time is up. Else
// it returns nil.
func (e *Engine) overdue(t *Transfer, now time.Time) error {
	if err := e.contextError(t); err != nil {
		return err
	}

	if t.deadline.IsZero() || now.Before(t.deadline) {
		return nil
	}

	e.noteOthers(t)
	late := &transport.TimeoutError{By: e.rank, After: t.Timeout}
	switch from := e.sourceOf(t); from {
	case e.rank:
		late.Behind = []int{from}
	case AnySource:
		e.link.Behind(e.rank) // it learns for whom the others wait by now
		late.Left, late.Waiting, late.Behind = e.sortRanks()
		for i, r := range late.Behind {
			late.Behind[i] = e.link.Behind(r)
		}

		if late.Behind = append(late.Behind, late.Left...); len(late.Behind) == 0 {
			late.Behind = slices.Clone(late.Waiting)
		}
		slices.Sort(late.Behind)
		late.Behind = slices.Compact(late.Behind)

	default:
		late.Behind = []int{e.link.Behind(from)}
	}
	late.Hosts = e.group.Hosts(late.Behind)
	return late
}

// sortRanks returns the other ranks that have left the group, those that wait for this one, and the
// rest, which could still send.
func (e *Engine) sortRanks() (departed, waiting, others []int) {
	for r := range e.incoming {
		switch {
		case r == e.rank:
		case e.isLost(r):
			departed = append(departed, r)
		case e.waitsForThis(r):
			waiting = append(waiting, r)
		default:
			others = append(others, r)
		}
	}
	return departed, waiting, others
}

// isLost reports whether a rank is lost. If this rank has left meanwhile, others are not lost.
func (e *Engine) isLost(rank int) bool {
	_, isLost := errors.AsType[*transport.PeerLostError](e.link.Lost(rank))
	return isLost
}

// waitsForThis reports whether a rank waits for this one, or for a rank that does.
func (e *Engine) waitsForThis(rank int) bool {
	for range e.incoming { // the waits may run in a circle beside this rank
		if rank = e.link.AwaitedBy(rank); rank < 0 || rank == e.rank {
			break
		}
	}
	return rank == e.rank
}

// warn tells the owner of a receive from AnySource which ranks cannot send, if there are some. It
// does so once, or each time that the timeout has passed if that ends nothing.
func (e *Engine) warn(t *Transfer, now time.Time) {
	if t.warnAt = (time.Time{}); t.Timeout < 0 {
		t.warnAt = now.Add(-t.Timeout)
	}
	if departed, waiting, _ := e.sortRanks(); !t.visible && len(departed)+len(waiting) > 0 {
		t.Owner.Warn(departed, waiting)
	}
}

// noteOthers notes the tags of the messages that have come while a receive waited.
func (e *Engine) noteOthers(t *Transfer) {
	for _, m := range e.unexpected {
		if !t.Sending && (t.Peer == m.from || t.Peer == AnySource) && !slices.Contains(t.Others, m.tag) {
			t.Others = append(t.Others, m.tag)
		}
	}
}
