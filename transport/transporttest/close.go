package transporttest

import (
	"context"
	"runtime"
	"time"
	"weak"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

func closeTwice(h *harness, n int) {
	for trial := range 4 {
		h.run(func(r *rank) {
			for range trial + 1 {
				failIf(r.makeViewCall(64, false, true))
			}
			var errs [4]error
			var again interleave.WaitGroup
			for i := range 2 { // also at the same time
				again.Go(func() { errs[i] = r.Close() })
			}
			errs[2] = r.Close()
			again.Wait()
			errs[3] = r.Close()
			for _, err := range errs {
				failIfIn(err, "Close")
			}
			r.useAfterClose()
		})
	}
}

func (r *rank) useAfterClose() {
	for i := range 4 {
		e := r.nextArrival()
		e.Exposed, e.AnyRunner = i&1 != 0, i&2 != 0
		_, err := r.Enter(e)
		expectError(err, transport.ErrClosed)
		if r.Withdraw() {
			fail("Withdraw returned true for call %d, which this rank has not entered (Exposed %v, AnyRunner %v)", e.Seq, e.Exposed, e.AnyRunner)
		}
	}

	if r.size > 1 {
		_, err := r.Next((r.number + 1) % r.size)
		expectError(err, transport.ErrClosed)
	}
	if r.Rank() != r.number || r.Size() != r.size {
		fail("the endpoint returns rank %d of %d", r.Rank(), r.Size())
	}
	r.Fail(failureBy(r.number, 0)) // its result is of no use any more
	r.Failed()
	r.Failure()
}

// marker is memory to which anything that a transport leaves behind refers.
type marker [64]byte

// markTimeout makes this rank's timeout, which no call reaches, refer to a marker.
func (r *rank) markTimeout(m *marker) {
	r.SetTimeout(transport.Timeout{After: time.Hour, Warn: func(uint64, []int) { runtime.KeepAlive(m) }})
}

// leavesNothing fails if goroutines or the marker outlive use. use has to close every
// endpoint that refers to the marker.
func (h *harness) leavesNothing(use func(m *marker)) {
	if interleave.IsSeeded() {
		use(new(marker)) // package interleave counts goroutines and timers
		return
	}
	before := runtime.NumGoroutine()
	m := new(marker)
	mark := weak.Make(m)
	use(m)
	for end := time.Now().Add(h.patience); runtime.NumGoroutine() > before || mark.Value() != nil; runtime.GC() {
		if time.Now().After(end) {
			fail("after Close there are %d goroutines instead of %d, and what the timeouts refer to is garbage: %v\n%s",
				runtime.NumGoroutine(), before, mark.Value() == nil, stacks())
		}
		// The runtime keeps a timer that was stopped, and what it refers to, until a quarter of its
		// timers were. Those that hung transports have left count too. One that was stopped before the
		// next was made would not: the runtime drops it.
		var timers [1000]*time.Timer
		for i := range timers {
			timers[i] = time.AfterFunc(time.Hour, func() {})
		}
		for _, t := range timers {
			t.Stop()
		}
	}
}

// leaks uses timers and contexts in groups, and closes them.
func leaks(h *harness, n int) {
	// A context that outlives the groups, like the context of a program.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for trial := range 4 {
		h.leavesNothing(func(m *marker) {
			h.run(func(r *rank) {
				r.markTimeout(m)
				for range 10 {
					r.pause() // so that others wait long enough to use timers
					e := r.nextArrival()
					e.Ctx, e.AnyRunner, e.Exposed, e.Work = ctx, true, true, workAmounts[3]
					failIf(r.makeCall(e, func(*rank) {}))
				}
				if trial%2 == 0 {
					return
				}
				if r.number == n-1 { // the last rank leaves while the others wait for it
					yield(400)
					failIfIn(r.Close(), "Close")
					return
				}
				e := r.nextArrival()
				e.Ctx, e.Limit = ctx, transport.Timeout{After: 2 * time.Hour}
				_, err := r.Enter(e)
				checkLost(err, n-1)
			})
		})
	}
}

// groupLeaks keeps the outer group: nothing of the others may hang on it.
func groupLeaks(h *harness, n int) {
	h.runGroupThatForms(func(g *group) {
		for trial := range uint64(4) {
			h.leavesNothing(func(m *marker) {
				groups := g.formGroups([]uint64{trial}, [][]int{{n - 1, 0}})
				groups[0].run(func(r *rank) {
					r.markTimeout(m)
					for range 5 {
						r.pause()
						r.exchangePayloads()
					}
				})

				closeAll(groups...)
			})
		}
	})
}
