package transporttest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/transport"
)

// failureBy is a failure that says by which rank it was recorded in all its
// parts.
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
		f.Ranks = make([]int, 64)
		for i := range f.Ranks {
			f.Ranks[i] = 100*rank + i
		}
	}
	return f
}

// sameFailure compares what reaches every rank.
func sameFailure(got, want *transport.Failure) error {
	if got == nil || got.Kind != want.Kind || got.By != want.By || got.Seq != want.Seq ||
		got.After != want.After || got.Text != want.Text || !slices.Equal(got.Ranks, want.Ranks) {
		return fmt.Errorf("the recorded failure is %+v instead of %+v", got, want)
	}
	return nil
}

func failFirst(h *harness, n int) error {
	for trial := range 20 {
		err := h.world(n, uint64(trial), func(w *world) error {
			recorded := make([]*transport.Failure, n)
			err := w.each(func(r *rank) error { // all at once
				if r.Failure() != nil && !r.Failed() {
					return errors.New("Failure is there, but Failed is false")
				}
				r.yield()
				recorded[r.me] = r.Fail(failureBy(r.me, trial))
				if !r.Failed() {
					return errors.New("Failed is false after Fail")
				}
				return nil
			})
			if err != nil {
				return err
			}
			if recorded[0] == nil || recorded[0].By < 0 || recorded[0].By >= n {
				return fmt.Errorf("Fail returned %+v", recorded[0])
			}
			want := failureBy(recorded[0].By, trial)
			return w.each(func(r *rank) error {
				if err := sameFailure(recorded[r.me], want); err != nil {
					return fmt.Errorf("what Fail returned: %w", err)
				}
				for range 2 {
					if err := sameFailure(r.Failure(), want); err != nil {
						return err
					}
					late := r.Fail(failureBy(r.me, trial+1))
					if err := sameFailure(late, want); err != nil {
						return fmt.Errorf("after another Fail: %w", err)
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func failAfterwards(h *harness, n int) error {
	for trial := range 8 * n {
		by, kind, outside := trial%n, trial/n%4, trial/n >= 4
		err := h.world(n, uint64(trial), func(w *world) error {
			failed := newGate(1)
			return w.each(func(r *rank) error {
				if err := r.enter(r.entry()); err != nil {
					return err
				}
				if r.me == by {
					fail := func() {
						r.Fail(failureBy(by, trial))
						failed.pass()
					}
					if outside {
						go fail()
					} else {
						fail()
					}
					return nil // and makes no call any more
				}
				if err := w.await(failed.opened); err != nil {
					return err
				}
				e := r.entry()
				e.Exposed, e.AnyRunner = kind&1 != 0, kind&2 != 0
				if _, err := r.Enter(e); !errors.Is(err, transport.ErrFailed) {
					return fmt.Errorf("Enter of call %d: %w", e.Seq, wrong(err, "ErrFailed"))
				}
				if r.Withdraw() {
					return fmt.Errorf("Withdraw says that call %d has ended well, which not all have entered", e.Seq)
				}
				return sameFailure(r.Failure(), failureBy(by, trial))
			})
		})
		if err != nil {
			return fmt.Errorf("rank %d fails (exposed %v, shared %v): %w", by, kind&1 != 0, kind&2 != 0, err)
		}
	}
	return nil
}
