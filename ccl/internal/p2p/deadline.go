package p2p

import (
	"context"
	"reflect"
	"time"

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

// setDeadline sets the deadline of a new transfer.
func (e *Engine) setDeadline(t *Transfer) {
	if t.Timeout > 0 {
		now := time.Now()
		t.deadline = now.Add(t.Timeout)
		e.setTimer(t.deadline, now)
	}
}

// setTimer calls wake at the next deadline, unless it is zero or the timer ends earlier.
func (e *Engine) setTimer(next, now time.Time) {
	if next.IsZero() || !e.timerAt.IsZero() && !next.Before(e.timerAt) && now.Before(e.timerAt) {
		return
	}
	e.timerAt = next
	if e.timer == nil {
		e.timer = time.AfterFunc(next.Sub(now), e.wake)
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
		e.sharedCtx, e.unwatch = ctx, context.AfterFunc(ctx, e.wake)
	default:
		t.unwatch = context.AfterFunc(ctx, e.wake)
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

	late := &transport.TimeoutError{By: e.rank, After: t.Timeout}
	switch t.Peer {
	case e.rank:
		late.Behind = []int{t.Peer}
	case AnySource:
		for r := range e.incoming {
			if r != e.rank {
				late.Behind = append(late.Behind, r)
			}
		}

	default:
		late.Behind = []int{e.link.Behind(t.Peer)}
	}
	return late
}
