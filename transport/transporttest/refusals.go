package transporttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/transport"
)

// reason is why a rank refuses a call: now and then it is longer than what is kept.
func reason(rank int, seq uint64) string {
	why := fmt.Sprintf("rank %d refuses call %d", rank, seq)
	if seq%3 == 0 {
		why = strings.Repeat(why+", ", 30)
	}
	return why
}

// refuse refuses the next call.
func (r *rank) refuse() {
	r.seq++
	r.Refuse(r.seq, reason(r.me, r.seq))
}

// refuseAll mixes runs of refused calls with good ones. A slow rank looks at what
// was brought to a good call while faster ones have refused the calls after it
// and are about to enter the next, in whose place the good one's may lie.
func refuseAll(h *harness, n int) error {
	return h.world(n, 0, func(w *world) error {
		limit := min(w.ranks[0].PayloadLimit(), transport.InlineBytes)
		length := func(q int) int { return limit }
		return w.each(func(r *rank) error {
			for i := range 300 {
				if err := r.payload(length); err != nil {
					return err
				}
				if i%4 == r.me%4 {
					r.pause()
				}
				if err := r.checkPayloads(r.seq, length); err != nil {
					return fmt.Errorf("while others refuse calls: %w", err)
				}
				if err := r.checkPrints(r.seq); err != nil {
					return fmt.Errorf("while others refuse calls: %w", err)
				}
				for range mix(uint64(i)) % 4 {
					r.refuse()
					r.yield()
				}
				if i%50 == 0 {
					for range 100 {
						r.refuse()
					}
				}
				if i%5 == 0 {
					if err := r.window(100, false, false); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// refusedBy returns an error unless err is a *RefusedError for call seq by one or
// more of who, with their reasons.
func refusedBy(err error, seq uint64, who ...int) error {
	return refusedSince(err, seq, true, who...)
}

// refusedSince is refusedBy for ranks that may have refused further calls since: unless
// theirs are kept, their reasons may be gone.
func refusedSince(err error, seq uint64, kept bool, who ...int) error {
	e, ok := errors.AsType[*transport.RefusedError](err)
	if !ok || e.Seq != seq || len(e.Ranks) == 0 {
		return wrong(err, "*RefusedError for call %d", seq)
	}
	for i, r := range e.Ranks {
		if !slices.Contains(who, r) {
			return wrong(err, "only ranks %v", who)
		}
		if len(e.Why) != len(e.Ranks) {
			return wrong(err, "a reason for each rank, not %q", e.Why)
		}
		why := reason(r, seq)
		why = why[:min(len(why), transport.ReasonBytes)]
		if got := e.Why[i]; got != why && (kept || got != "") {
			return wrong(err, "the reason of rank %d, %q, not %q", r, why, got)
		}
	}
	return nil
}

func refuseAlone(h *harness, n int) error {
	for trial := range 8 * n {
		first, kind := trial%n, trial/n
		exposed, early, hasty := kind&1 != 0, kind&2 != 0, kind&4 != 0
		who := []int{first}
		if kind%3 == 2 && n > 2 {
			who = append(who, (first+1)%n)
		}
		err := h.world(n, uint64(trial), func(w *world) error {
			refused, noticed := newGate(1), newGate(n-len(who))
			if hasty {
				noticed = nil
			}
			return w.each(func(r *rank) error {
				for range trial % 3 {
					if err := r.enter(r.entry()); err != nil {
						return err
					}
				}
				if slices.Contains(who, r.me) {
					r.pause()
					r.refuse()
					if r.me == first {
						refused.pass()
					}
					return r.enterAfterRefusal(noticed, who)
				}
				if early { // no wait has begun when the refusal comes
					if err := w.await(refused.opened); err != nil {
						return err
					}
				}
				e := r.entry()
				e.Exposed, e.AnyRunner = exposed, exposed
				return r.enterRefused(e, noticed, who)
			})
		})
		if err != nil {
			return fmt.Errorf("ranks %v refuse (exposed %v, before the others wait %v): %w", who, exposed, early, err)
		}
	}
	return nil
}

func refuseRuns(h *harness, n int) error {
	for trial := range 6 * n {
		longer, run := trial%n, trial/n%3+1
		err := h.world(n, uint64(trial), func(w *world) error {
			noticed := newGate(n - 1)
			return w.each(func(r *rank) error {
				if err := r.enter(r.entry()); err != nil {
					return err
				}
				for range run {
					r.refuse()
				}
				r.pause()
				if r.me == longer {
					r.refuse()
					return r.enterAfterRefusal(noticed, []int{longer})
				}
				return r.enterRefused(r.entry(), noticed, []int{longer})
			})
		})
		if err != nil {
			return fmt.Errorf("rank %d refuses %d calls and the others %d: %w", longer, run+1, run, err)
		}
	}
	return nil
}

// refuseOn lets a rank refuse a call, and more of them, while the others enter it.
func refuseOn(h *harness, n int) error {
	for trial := range 24 * n {
		who, before, more := trial%n, trial/n%3, trial/n/3%4*7
		err := h.world(n, uint64(trial), func(w *world) error {
			return w.each(func(r *rank) error {
				if err := r.enter(r.entry()); err != nil {
					return err
				}
				for range before { // all do
					r.refuse()
				}
				r.pause()
				if r.me == who {
					for range 1 + more {
						r.refuse()
						r.yield()
					}
					return nil
				}
				e := r.entry()
				_, err := r.Enter(e)
				return refusedSince(err, e.Seq, before == 0 || more == 0, who)
			})
		})
		if err != nil {
			return fmt.Errorf("rank %d refuses %d calls and the others %d: %w", who, before+1+more, before, err)
		}
	}
	return nil
}

// enterAfterRefusal enters the call after one that only the ranks of who have
// refused. It need not notice so by itself: the others make the group fail.
func (r *rank) enterAfterRefusal(noticed *gate, who []int) error {
	refusal := r.seq
	r.pause()
	e := r.entry()
	_, err := r.Enter(e)
	if !errors.Is(err, transport.ErrFailed) {
		if err := refusedBy(err, refusal, who...); err != nil {
			return fmt.Errorf("Enter of call %d after refusing call %d: %w", e.Seq, refusal, err)
		}
	}
	if noticed != nil {
		if err := r.w.await(noticed.opened); err != nil {
			return err
		}
	}
	return r.leaveRefused(e, err, refusal, who)
}

// enterRefused enters a call that the ranks of who refuse. All that entered have
// to notice before anyone makes the group fail, unless noticed is nil.
func (r *rank) enterRefused(e *transport.Arrival, noticed *gate, who []int) error {
	r.pause()
	_, err := r.Enter(e)
	if noticed != nil || !errors.Is(err, transport.ErrFailed) {
		if err := refusedBy(err, e.Seq, who...); err != nil {
			return fmt.Errorf("Enter of call %d: %w", e.Seq, err)
		}
	}
	if noticed != nil {
		noticed.pass()
		if err := r.w.await(noticed.opened); err != nil {
			return err
		}
	}
	return r.leaveRefused(e, err, e.Seq, who)
}

// leaveRefused gives up call e. refusal is the call that the ranks of who have
// refused.
func (r *rank) leaveRefused(e *transport.Arrival, err error, refusal uint64, who []int) error {
	if r.leave(e, err) == nil {
		return fmt.Errorf("Withdraw says that call %d has ended well", e.Seq)
	}
	f := r.Failure()
	if f.Kind != transport.FailureRefused {
		return fmt.Errorf("the failure is %+v", f)
	}
	if f.Seq != refusal || len(f.Ranks) == 0 || slices.ContainsFunc(f.Ranks, func(r int) bool { return !slices.Contains(who, r) }) {
		return fmt.Errorf("the failure is %+v, want one of ranks %v in call %d", f, who, refusal)
	}
	return nil
}
