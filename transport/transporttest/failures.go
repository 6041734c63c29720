package transporttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// failureBy is a failure all of whose fields tell which rank recorded it.
func failureBy(rank, trial int) *transport.Failure {
	f := &transport.Failure{
		Kind: 1 + transport.FailureKind(rank+trial)%transport.FailureAborted,
		By:   rank, Seq: mix(uint64(rank)), After: time.Duration(rank) * time.Second,
		Text:  fmt.Sprintf("rank %d gave up in trial %d: äöü %%", rank, trial),
		Cause: errBody,
	}
	for i := range (trial + rank) % 4 {
		f.Ranks = append(f.Ranks, 10*rank+i)
	}
	if trial%5 == 4 {
		f.Ranks = nil
		for i := range 64 {
			f.Ranks = append(f.Ranks, 100*rank+i)
		}
	}
	return f
}

// sameFailure compares what reaches every rank.
func sameFailure(got, want *transport.Failure, what string) {
	if got == nil || got.Kind != want.Kind || got.By != want.By || got.Seq != want.Seq ||
		got.After != want.After || got.Text != want.Text || !slices.Equal(got.Ranks, want.Ranks) {
		fail("the failure that %s is %+v instead of %+v", what, got, want)
	}
}

func failFirst(h *harness, n int) {
	for trial := range 20 {
		all := newGate(n)
		recorded := make([]*transport.Failure, n)
		h.run(func(r *rank) { // all at once
			if r.Failure() != nil && !r.Failed() {
				fail("Failure is not nil, but Failed is false")
			}
			r.yield()
			recorded[r.number] = r.Fail(failureBy(r.number, trial))
			if !r.Failed() {
				fail("Failed is false after Fail")
			}

			r.passAndAwait(all)
			if f := recorded[0]; f == nil || f.By < 0 || f.By >= n {
				fail("Fail returned %+v on rank 0", f)
			}
			want := failureBy(recorded[0].By, trial)
			sameFailure(recorded[r.number], want, "Fail returned")
			for range 2 {
				sameFailure(r.Failure(), want, "was recorded")
				sameFailure(r.Fail(failureBy(r.number, trial+1)), want, "another Fail returned")
			}
		})
	}
}

func failAfterwards(h *harness, n int) {
	for trial := range 8 * n {
		by, kind, outside := trial%n, trial/n%4, trial/n >= 4
		exposed, anyRunner := kind&1 != 0, kind&2 != 0
		failed := newGate(1)
		what := fmt.Sprintf("rank %d fails (Exposed %v, AnyRunner %v)", by, exposed, anyRunner)
		h.runTitled(what, func(r *rank) {
			r.makeCalls(1)
			if r.number == by { // and makes no call any more
				record := func() {
					r.Fail(failureBy(by, trial))
					failed.pass()
				}
				if outside {
					interleave.Go(record)
				} else {
					record()
				}
				return
			}

			r.awaitGate(failed)
			e := r.nextArrival()
			e.Exposed, e.AnyRunner = exposed, anyRunner
			_, err := r.Enter(e)
			expectError(err, transport.ErrFailed)
			if r.Withdraw() {
				fail("Withdraw returned true for call %d, which not all have entered", e.Seq)
			}
			sameFailure(r.Failure(), failureBy(by, trial), "was recorded")
		})
	}
}
