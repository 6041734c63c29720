package transporttest

import (
	"context"
	"fmt"
	"slices"
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

// completionEnds are events that end the wait of ranks for the completion of a call by the last
// one.
var completionEnds = []struct {
	what   string
	closes bool // a rank that may then be lost to the others before it has completed the call
	end    func(last, other *rank, cancel func())
}{
	{"another goroutine fails the group", false, func(last, _ *rank, _ func()) { last.Fail(failureBy(last.number, 0)) }},
	{"the context of another rank ends", false, func(_, _ *rank, cancel func()) { cancel() }},
	{"another rank is closed", true, func(_, other *rank, _ func()) { failIf(other.Close()) }},
	{"it is closed", true, func(last, _ *rank, _ func()) { failIf(last.Close()) }},
}

// ending is how the ranks of a call come to its end.
type ending struct {
	isExposed bool
	await     func(r *rank) error
	resolve   func(r *rank) bool // whether the call has succeeded after an error of await, which Fail has recorded
	check     func(r *rank)      // unless nil, checks the outcome of success
}

// withdrawCompleted is completedAfterFailure of calls that end with Complete.
func withdrawCompleted(h *harness, n int) {
	completedAfterFailure(h, n, &ending{true, func(r *rank) error { return r.Complete() }, func(r *rank) bool { return r.Withdraw() }, nil})
}

// stagingResolved is completedAfterFailure of calls that end with a Flip.
func stagingResolved(h *harness, n int) {
	completedAfterFailure(h, n, &ending{
		await:   func(r *rank) error { putInput(r, nil, noRank); return flip(r, nil, noRank) },
		resolve: func(r *rank) bool { return r.Staging().ResolveFlip() || r.Withdraw() },
		check: func(r *rank) {
			for q := range n {
				checkSame(r.Staging().Input(q, 1), data(1, q), "Input(%d)", q)
			}
		},
	})
}

// completedAfterFailure lets all ranks but the last come to the end of a call. When one of them has
// given up the wait for the last, that comes to the end, or gives up as well.
func completedAfterFailure(h *harness, n int, end *ending) {
	for trial := range 2 * n * len(completionEnds) {
		last, completes := trial%n, trial/n%2 == 0
		event := completionEnds[trial/n/2]
		other := (last + 1) % n
		ctx, cancel := context.WithCancel(context.Background())
		inside, gaveUp := newGate(n), newGate(1)
		succeeded := make([]bool, n)

		what := fmt.Sprintf("rank %d is inside the call when %s, and then completes it: %v", last, event.what, completes)
		h.runTitled(what, func(r *rank) {
			if !end.isExposed && r.Staging() == nil {
				succeeded[r.number] = completes // the ranks share memory
				return
			}
			r.makeCalls(1)
			e := r.nextArrival()
			e.Exposed = end.isExposed
			if r.number == other {
				e.Ctx = ctx
			}
			r.enter(e)
			r.passAndAwait(inside)

			if r.number == last {
				r.pause()
				event.end(r, r.group.ranks[other], cancel)
				r.awaitGate(gaveUp)
			}

			if r.number == last && !completes {
				succeeded[last] = r.giveUp(e, errBody) == nil
			} else {
				succeeded[r.number] = r.awaitEnd(end, gaveUp, r.number == other)
			}
			if succeeded[r.number] && completes && end.check != nil {
				end.check(r)
			}
		})
		cancel()

		hasFailed := slices.Contains(succeeded, false)
		if slices.Contains(succeeded, true) && hasFailed || hasFailed == completes && !(completes && event.closes) {
			fail("%s: the call has succeeded on ranks: %v", what, succeeded)
		}
	}
}

// awaitEnd comes to the end of the current call, whose last rank does not do so before gaveUp is
// open, and reports whether the call succeeds. passes says that this rank gives up and passes
// gaveUp.
func (r *rank) awaitEnd(end *ending, gaveUp *gate, passes bool) bool {
	err := end.await(r)
	if err == nil && (passes || !gaveUp.isOpen()) {
		fail("the wait returned nil before all ranks have come to the end of the call")
	}
	if err == nil {
		return true
	}

	r.Fail(failureOf(r.number, r.seq, err))
	if passes {
		gaveUp.pass()
	}
	return end.resolve(r)
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
