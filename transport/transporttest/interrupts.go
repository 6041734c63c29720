package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/transport"
)

// wait is a way to wait for a rank, the absent one, that does nothing.
type wait struct {
	name string
	// inside: all ranks have entered the call, which is exposed, when the wait
	// begins. Otherwise the absent rank does not enter it.
	inside  bool
	staging bool // needs Staging
	// prepare, unless nil, is what all ranks do inside the call beforehand.
	prepare func(r *rank) error
	// block waits; it returns nil only if the transport is broken.
	block func(r *rank, e *transport.Arrival, absent int) error
}

var waits = []wait{
	{name: "Enter", block: enterPlain},
	{name: "Enter of an exposed call", block: enterExposed},
	{name: "Enter of a shared call", block: enterShared},
	{name: "Enter after a refused call", block: enterSettling},
	{name: "Complete", inside: true, block: awaitCompletion},
	{name: "Next", inside: true, block: awaitMessage},
	{name: "Drain", inside: true, block: awaitTaking},
	{name: "Put", inside: true, block: awaitRoom},
	{name: "Turn", inside: true, staging: true, block: awaitTurn},
	{name: "second Turn", inside: true, staging: true, prepare: turn, block: awaitTurn},
	{name: "Enter, a turn", staging: true, block: enterStaged},
}

func enterPlain(r *rank, e *transport.Arrival, _ int) error {
	_, err := r.Enter(e)
	return err
}

func enterExposed(r *rank, e *transport.Arrival, _ int) error {
	e.Exposed = true
	_, err := r.Enter(e)
	return err
}

func enterShared(r *rank, e *transport.Arrival, _ int) error {
	e.Exposed, e.AnyRunner, e.Work = true, true, work[3]
	_, err := r.Enter(e)
	return err
}

// enterSettling refuses a call before. e is of the call after it.
func enterSettling(r *rank, e *transport.Arrival, _ int) error {
	r.Refuse(e.Seq, reason(r.me, e.Seq))
	r.seq++
	e.Seq = r.seq
	_, err := r.Enter(e)
	return err
}

func awaitCompletion(r *rank, _ *transport.Arrival, _ int) error { return r.Complete() }

func awaitMessage(r *rank, _ *transport.Arrival, absent int) error {
	_, err := r.Next(absent)
	return err
}

func awaitTaking(r *rank, e *transport.Arrival, absent int) error {
	m := letter(e.Seq, r.me, absent, 1, 0)
	if _, err := r.put(absent, &m); err != nil {
		return fmt.Errorf("the first Put: %w", err)
	}
	return r.Drain(absent)
}

// awaitRoom fills the stream. If that cannot be done it awaits that all is taken.
func awaitRoom(r *rank, e *transport.Arrival, absent int) error {
	for i := range 1000 {
		m := letter(e.Seq, r.me, absent, 64<<10, i)
		if _, err := r.Put(absent, &m); err != nil {
			return err
		}
	}
	return r.Drain(absent)
}

func enterStaged(r *rank, e *transport.Arrival, _ int) error {
	r.Staging().PutInput(data(1, r.me), 0, 0)
	e.Staged = true
	_, err := r.Enter(e)
	return err
}

func awaitTurn(r *rank, _ *transport.Arrival, _ int) error { return turn(r) }

func turn(r *rank) error {
	s := r.Staging()
	s.PutInput(data(1, r.me), 0, 0)
	s.PutResult(0, []byte{1})
	return s.Flip()
}

// event is something that ends a wait.
type event struct {
	name  string
	limit time.Duration // timeout of the call; 0: none
	// deadline is when the call's context ends; 0: when it is cancelled.
	deadline time.Duration
	// happen, unless nil, is done by the absent rank. Otherwise time does it.
	happen func(absent *rank, cancel func())
	// right reports what is wrong with the error of a wait.
	right func(err error, e *transport.Arrival, wt *wait, absent int) error
}

var (
	failure = event{
		name: "failure",
		happen: func(absent *rank, _ func()) {
			by := absent
			if absent.rnd.IntN(2) == 0 {
				by = absent.w.ranks[0] // anyone may record a failure at any endpoint
			}
			by.Fail(failureBy(absent.me, 0))
		},
		right: is(transport.ErrFailed),
	}
	cancelled = event{
		name:   "cancelled context",
		happen: func(_ *rank, cancel func()) { cancel() },
		right:  is(context.Canceled),
	}
	deadline = event{
		name:     "deadline",
		deadline: 10 * time.Millisecond,
		right:    is(context.DeadlineExceeded),
	}
	departure = event{
		name:   "departure",
		happen: func(absent *rank, _ func()) { absent.Close() },
		right: func(err error, _ *transport.Arrival, _ *wait, absent int) error {
			if e, ok := errors.AsType[*transport.PeerLostError](err); !ok || e.Rank != absent {
				return wrong(err, "*PeerLostError for rank %d", absent)
			}
			return nil
		},
	}
	ownClose = event{
		name:   "closing of the own endpoint",
		happen: func(absent *rank, _ func()) { absent.w.ranks[0].Close() },
		right:  is(transport.ErrClosed),
	}
	timedOut = event{
		name:  "timeout",
		limit: 10 * time.Millisecond,
		right: timeoutNaming,
	}
)

// is looks for want.
func is(want error) func(error, *transport.Arrival, *wait, int) error {
	return func(err error, _ *transport.Arrival, _ *wait, _ int) error {
		if !errors.Is(err, want) {
			return wrong(err, "%q", want)
		}
		return nil
	}
}

// timeoutNaming looks for the absent rank in a *TimeoutError.
func timeoutNaming(err error, e *transport.Arrival, wt *wait, absent int) error {
	t, ok := errors.AsType[*transport.TimeoutError](err)
	if !ok {
		return wrong(err, "*TimeoutError")
	}
	missing, behind := []int{absent}, []int(nil)
	if wt.inside {
		missing, behind = behind, missing
	}
	if !slices.Equal(t.Missing, missing) || !slices.Equal(t.Behind, behind) || t.Seq != e.Seq || t.After < e.Limit.After {
		return fmt.Errorf("the error is %+v, but rank %d is absent in call %d, which has a timeout of %v",
			*t, absent, e.Seq, e.Limit.After)
	}
	return nil
}

// interruptedBy tries an event on all waits, before and after they have begun.
func interruptedBy(ev event) func(h *harness, n int) error {
	return func(h *harness, n int) error {
		for i := range waits {
			for trial := range 4 {
				early := trial == 0
				if ev.happen == nil && trial > 0 {
					break // time has its own moment
				}
				err := interruptInTime(h, n, &waits[i], ev, early, uint64(trial))
				if err != nil {
					return fmt.Errorf("%s during %s (before the wait: %v): %w", ev.name, waits[i].name, early, err)
				}
			}
		}
		return nil
	}
}

// errTooShort says that the call's time was over before it was entered.
var errTooShort = errors.New("the call's time was over before all ranks had entered it")

// interruptInTime tries again with more time if the machine was too slow for the
// ranks to get to the wait.
func interruptInTime(h *harness, n int, wt *wait, ev event, early bool, seed uint64) error {
	for range 6 {
		err := interrupt(h, n, wt, ev, early, seed)
		if !errors.Is(err, errTooShort) {
			return err
		}
		ev.deadline *= 2
		ev.limit *= 2
	}
	return errTooShort
}

// interrupt lets all ranks but the last wait for the last, until ev happens.
func interrupt(h *harness, n int, wt *wait, ev event, early bool, seed uint64) error {
	return h.world(n, seed, func(w *world) error {
		if wt.staging && w.ranks[0].Staging() == nil {
			h.logf("Staging is nil: there is no wait in %s", wt.name)
			return nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if ev.deadline > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, ev.deadline)
			defer stop()
		}
		absent := n - 1
		ready, happened, over := newGate(absent), newGate(1), newGate(absent)
		return w.each(func(r *rank) error {
			if err := r.enter(r.entry()); err != nil {
				return err
			}
			e := r.entry()
			if r.me != absent {
				e.Ctx, e.Limit = ctx, transport.Timeout{After: ev.limit}
			}
			if wt.inside {
				if err := wt.begin(r, e); err != nil {
					if ev.happen == nil && !errors.Is(err, transport.ErrFailed) {
						return errTooShort
					}
					return err
				}
			}
			if r.me == absent {
				if err := w.await(ready.opened); err != nil {
					return err
				}
				if ev.happen != nil {
					if !early {
						r.pause()
					}
					ev.happen(r, cancel)
				}
				happened.pass()
				if err := w.await(over.opened); err != nil {
					return err
				}
				if wt.inside {
					_ = r.leave(e, errStopped) // not before: leaving ends some waits
				}
				return nil
			}
			ready.pass()
			if early {
				if err := w.await(happened.opened); err != nil {
					return err
				}
			}
			err := wt.block(r, e, absent)
			if err := ev.right(err, e, wt, absent); err != nil {
				return err
			}
			over.pass()
			if err := w.await(over.opened); err != nil {
				return err
			}
			_ = r.leave(e, err)
			return nil
		})
	})
}

// begin brings a rank inside call e.
func (wt *wait) begin(r *rank, e *transport.Arrival) error {
	e.Exposed = true
	if err := r.enter(e); err != nil || wt.prepare == nil {
		return err
	}
	return wt.prepare(r)
}

// bystander lets rank 0 wait while rank 2 leaves or refuses and rank 1 is yet to
// come.
func bystander(h *harness, n int) error {
	for trial := range 16 {
		leaves, exposed, early := trial&1 != 0, trial&2 != 0, trial&4 != 0
		err := h.world(n, uint64(trial), func(w *world) error {
			happened, noticed := newGate(1), newGate(1)
			return w.each(func(r *rank) error {
				if err := r.enter(r.entry()); err != nil {
					return err
				}
				e := r.entry()
				e.Exposed, e.AnyRunner = exposed, exposed
				switch {
				case r.me == 1:
					if err := w.await(noticed.opened); err != nil {
						return err
					}
				case r.me == 2:
					r.pause()
					if leaves {
						r.Close()
					} else {
						r.Refuse(e.Seq, reason(r.me, e.Seq))
					}
					happened.pass()
					return nil
				case early:
					if err := w.await(happened.opened); err != nil {
						return err
					}
				}
				_, err := r.Enter(e)
				noticed.pass()
				if leaves {
					return departure.right(err, e, nil, 2)
				}
				return refusedBy(err, e.Seq, 2)
			})
		})
		if err != nil {
			what := "refuses the call"
			if leaves {
				what = "leaves"
			}
			return fmt.Errorf("rank 2 %s while rank 1 is missing: %w", what, err)
		}
	}
	return nil
}
