package transporttest

import (
	"context"
	"fmt"
	"time"

	"github.com/goccl/goccl/transport"
)

// withdrawInside cancels the context of a rank while its successor's body is running.
func withdrawInside(h *harness, n int) {
	for trial := range 8 * n {
		leaver, anyRunner, bytes := trial%n, trial/n%2 == 0, workAmounts[trial/n/2%len(workAmounts)]
		holder := (leaver + 1) % n
		ctx, cancel := context.WithCancel(context.Background())
		var memory []byte // of the leaver
		ended := false    // set by the body without any synchronisation
		what := fmt.Sprintf("rank %d gives up while rank %d's body is running (AnyRunner %v, Work %d)", leaver, holder, anyRunner, bytes)
		h.runTitled(what, func(r *rank) {
			shared := r.Memory() != nil // otherwise no rank can touch it, and none waits
			if r.number == leaver {
				memory = make([]byte, 64)
			}
			r.makeCalls(1)
			e := r.nextArrival()
			e.Exposed, e.AnyRunner, e.Work = true, anyRunner, bytes
			allowed := transport.ErrFailed
			if r.number == leaver {
				e.Ctx, e.Send = ctx, memory
				allowed = context.Canceled
			}

			err := r.makeCall(e, func(b *rank) {
				if b.number != holder {
					b.yield()
					return
				}
				cancel()
				yield(1000) // a leaver that does not wait for the end is gone long before
				if shared {
					poison(memory)
					ended = true
				}
			})
			if err != nil {
				expectError(err, allowed)
			}

			if r.number != leaver {
				return
			}
			if shared && !ended {
				fail("call and Withdraw returned (error %v) while another rank was inside the call", err)
			}
			memory[0] = 1 // it is the leaver's again
		})
		cancel()
	}
}

// withdrawEarly lets a rank give up a call that not all have entered.
func withdrawEarly(h *harness, n int) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for trial := range 6 * n {
		leaver, anyRunner := trial%n, trial/n%2 == 0
		early := (leaver + 1) % n // enters without waiting for the leaver to be gone
		if n == 2 {
			early = noRank
		}

		gone := newGate(1)
		what := fmt.Sprintf("rank %d gives up before all have entered (AnyRunner %v)", leaver, anyRunner)
		h.runTitled(what, func(r *rank) {
			r.makeCalls(1)

			e := r.nextArrival()
			e.Exposed, e.AnyRunner, e.Work = true, anyRunner, workAmounts[trial%len(workAmounts)]
			want := transport.ErrFailed
			switch r.number {
			case leaver:
				defer gone.pass()
				r.pause()
				e.Ctx, want = ctx, context.Canceled

			case early:
				r.pause()
			default:
				r.awaitGate(gone)
			}

			expectError(r.makeCall(e, func(b *rank) { fail("rank %d runs the body of rank %d", r.number, b.number) }), want)
		})
	}
}

// withdrawStuck lets rank 0 give up a call in which rank 1's body goes on until rank 0 is
// gone.
func withdrawStuck(h *harness, n int) {
	inTime(2*firstLimit, func(limit time.Duration) {
		inside, gone := newGate(2), newGate(1)
		h.run(func(r *rank) {
			e := r.nextArrival()
			e.Exposed = true
			if r.number == 0 {
				e.Limit.After = limit
			}

			r.enter(e)
			r.passAndAwait(inside)
			if r.number == 1 {
				r.awaitGate(gone)
				_ = r.giveUp(e, errBody)
				return
			}

			r.Fail(failureOf(r.number, e.Seq, errBody))
			begin := time.Now()
			ended := r.Withdraw()
			took := time.Since(begin)
			gone.pass()
			if ended || r.Memory() != nil && took < limit {
				fail("Withdraw returned %v after %v, with rank 1 inside the call and a timeout of %v", ended, took, limit)
			}
		})
	})
}
