package transporttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// interruptedBy has an event interrupt all waits: before and after they start, and before another
// rank starts to wait.
func interruptedBy(ev *event) func(h *harness, n int) {
	return func(h *harness, n int) {
		for i := range waits {
			wt := &waits[i]
			switch {
			case ev.on(wt) == nil:
			case ev.happen == nil:
				inTime(firstLimit, func(limit time.Duration) { interrupt(h, n, wt, ev, 1, limit) })

			default:
				for trial := range 6 {
					interrupt(h, n, wt, ev, trial, 0)
				}
			}
		}
	}
}

// errTooShort reports that the time of a call was over before the wait began.
var errTooShort = errors.New("the call's time was over before all ranks had entered it")

// inTime runs f, again and again with more time as long as the machine is too slow for
// what f does before its time is over.
func inTime(limit time.Duration, f func(limit time.Duration)) {
	for {
		err := catchFailure(func() { f(limit) })
		if limit *= 2; limit > 2*time.Second || !errors.Is(err, errTooShort) && !errors.As(err, new(*transport.TimeoutError)) {
			failIf(err)
			return
		}
	}
}

// interrupt lets all ranks except the last, the peer, wait for the peer until ev happens. In
// some trials of waits outside of calls a bystander begins to wait only when the others have
// noticed ev.
func interrupt(h *harness, n int, wt *wait, ev *event, trial int, limit time.Duration) {
	early, bystander := trial%4 == 0, noRank
	if trial >= 4 && n > 2 && !wt.inside {
		bystander = n - 2
	}
	ctx, cancel := context.WithCancel(context.Background())
	if ev == deadline {
		ctx, cancel = interleave.WithTimeout(context.Background(), limit)
	}
	defer cancel()
	peer := n - 1
	ready, happened, ended := newGate(peer), newGate(1), newGate(peer)
	noticed := newGate(n - 2) // by all but the bystander
	what := fmt.Sprintf("%s meets %s, %s", ev.name, wt.name, map[bool]string{true: "before it", false: "in it"}[early])
	if bystander != noRank {
		what += fmt.Sprintf(", while rank %d is missing", bystander)
	}

	h.runTitled(what, func(r *rank) {
		if wt.has != nil && !wt.has(r.Endpoint) {
			return
		}
		r.makeCalls(1)
		m := &meeting{r, r.nextArrival(), wt, peer}
		if r.number != peer {
			m.e.Ctx = ctx
			if ev == timeout {
				m.e.Limit.After = limit
			}
		}

		if wt.inside {
			err := catchFailure(m.enterCall)
			if err != nil && ev.happen == nil && !errors.Is(err, transport.ErrFailed) {
				err = errTooShort
			}
			failIf(err)
		}

		if r.number == peer {
			r.awaitGate(ready)
			if ev.happen != nil {
				if !early {
					r.pause()
				}
				ev.happen(r, cancel)
			}
			happened.pass()
			r.awaitGate(ended)
			if wt.inside {
				_ = r.giveUp(m.e, errStopped) // not before: leaving ends some waits
			}
			return
		}
		ready.pass()
		if early {
			r.awaitGate(happened)
		}
		if r.number == bystander {
			r.awaitGate(noticed)
		}

		err := m.startAndWait()
		if err != nil || wt.optional == never || wt.optional == late && early {
			ev.on(wt)(m, err)
		}
		if r.number != bystander {
			noticed.pass()
		}
		r.awaitGate(happened)
		r.passAndAwait(ended)
		_ = r.giveUp(m.e, err)
	})
}

// enterCall brings the rank inside the call.
func (m *meeting) enterCall() {
	m.e.Exposed = true
	m.enter(m.e)
	if m.wait.before != nil {
		m.wait.before(m.rank)
	}
}

func (m *meeting) startAndWait() (err error) {
	if m.wait.start != nil {
		err = catchFailure(func() { m.wait.start(m.rank, m.e, m.peer) })
	}
	if err == nil {
		err = m.wait.block(m.rank, m.e, m.peer)
	}
	return err
}

// reached lets events meet waits that have been reached.
func reached(h *harness, n int) {
	for i := range waits {
		for _, ev := range []*event{cancelled, departure, failure} {
			if wt := &waits[i]; wt.mutual || wt.supply != nil {
				reach(h, n, wt, ev)
			}
		}
	}
}

// reach lets the last rank wait under a context that has ended, after the others, one by
// one, have done what it waits for, and ev has happened at the last of them, the peer.
func reach(h *harness, n int, wt *wait, ev *event) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	peer, waiter := n-2, n-1
	ready, turns, ended := newGate(n), newTurns(n), newGate(n)
	h.runTitled(fmt.Sprintf("%s meets %s, which has been reached", ev.name, wt.name), func(r *rank) {
		if wt.has != nil && !wt.has(r.Endpoint) {
			return
		}

		r.makeCalls(1)
		m := &meeting{r, r.nextArrival(), wt, peer}
		m.e.Ctx = ctx
		if wt.inside {
			m.enterCall()
		}
		if wt.start != nil && (wt.mutual || r.number == waiter) {
			wt.start(r, m.e, peer)
		}

		r.passAndAwait(ready)
		cancel()
		r.awaitGate(turns[r.number])

		switch {
		case r.number == waiter:
			err := wt.block(r, m.e, peer)
			if out := reachedExceptions[cell{ev, wt.name}]; out != nil {
				out(m, err)
			} else if err != nil {
				failUnexpected(err, "success")
			}

		case wt.mutual:
			expectError(wt.block(r, m.e, waiter), context.Canceled)
		case r.number == peer:
			wt.supply(r, m.e, waiter)
		}

		if r.number == peer {
			ev.happen(r, cancel)
		}
		if r.number != waiter {
			turns[r.number+1].pass()
		}
		if wt.inside {
			r.passAndAwait(ended)
			_ = r.giveUp(m.e, errStopped)
		}
	})
}

// reachedLeaving lets a rank leave or fail the group right after its last call, which others may
// still be in. They could take that for the end of the call for a short moment only, so there
// are as many trials as fit into a twentieth of a second.
func reachedLeaving(h *harness, n int) {
	end := time.Now().Add(50 * time.Millisecond)
	for trial := 0; trial < 16*n || trial < 2000 && time.Now().Before(end) && !interleave.IsSeeded(); trial++ {
		who, kind, ev, slow := trial%n, trial/n%4, []*event{departure, failure}[trial/n/4%2], trial/n/8%2 == 0
		exposed, anyRunner := kind&1 != 0, kind&2 != 0
		what := fmt.Sprintf("%s of rank %d after a call (Exposed %v, AnyRunner %v)", ev.name, who, exposed, anyRunner)
		h.runTitled(what, func(r *rank) {
			for range 3 {
				if slow {
					r.yield()
				}

				e := r.nextArrival()
				e.Exposed, e.AnyRunner, e.Work = exposed, anyRunner, workAmounts[trial%len(workAmounts)]
				if exposed && trial/n/16%2 == 0 && hasRegions(r.Endpoint) {
					e.Eager, e.Payload = true, data(100, r.number)
				}
				failIf(r.makeCall(e, func(b *rank) {
					if slow {
						b.yield()
					}
				}))
			}

			if r.number == who {
				ev.happen(r, nil)
			}
		})
	}
}

// endContexts ends rank 0's call by its context while rank 1 waits as well and rank 2 is yet to
// come.
func endContexts(h *harness, n int) {
	for trial := range 21 {
		ctx, cancel := context.WithCancel(context.Background())
		want := context.Canceled
		if trial%3 == 2 {
			ctx, cancel = context.WithDeadline(context.Background(), time.Now().Add(-time.Hour))
			want = context.DeadlineExceeded
		}

		gone := newGate(1)
		h.run(func(r *rank) {
			r.makeCalls(trial % 2)

			e := r.nextArrival()
			switch r.number {
			case 0:
				if trial%3 == 0 {
					cancel()
				} else {
					interleave.Go(func() {
						yield(20 * trial)
						cancel()
					})
				}

				e.Ctx = ctx
				_, err := r.Enter(e)
				gone.pass()
				expectError(err, want)
				return
			case 1: // its own context does not end
				other, cancelOther := context.WithCancel(context.Background())
				defer cancelOther()
				e.Ctx = other
			case 2:
				r.awaitGate(gone)
			}
			r.enter(e)
		})
		cancel()
	}
}
