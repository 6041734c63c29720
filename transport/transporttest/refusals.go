package transporttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/transport"
)

// reason is why a rank refuses a call. Now and then it is longer than what is kept.
func reason(rank int, seq uint64) string {
	why := fmt.Sprintf("rank %d refuses call %d", rank, seq)
	if seq%3 == 0 {
		why = strings.Repeat(why+", ", 30)
	}
	return why
}

func (r *rank) refuseCalls(calls int) {
	for range calls {
		r.seq++
		r.Reject(r.seq, reason(r.number, r.seq))
	}
}

// refuseAll mixes runs of refused calls with good ones. A slow rank looks at what was brought
// to a good call while faster ones have refused the calls after it and are about to enter the
// next, which may lie in the memory of the good one.
func refuseAll(h *harness, n int) {
	h.run(func(r *rank) {
		limit := min(r.PayloadLimit(), transport.InlineBytes)
		length := func(int) int { return limit }
		for i := range 300 {
			r.makePayloadCall(length)
			if i%4 == r.number%4 {
				r.pause()
			}

			r.checkPayloads(r.seq, length, "while others refuse calls")
			r.checkFingerprints(r.seq)
			for range mix(uint64(i)) % 4 {
				r.refuseCalls(1)
				r.yield()
			}

			if i%50 == 0 {
				r.refuseCalls(100)
			}
			if i%5 == 0 {
				failIf(r.makeViewCall(100, false, false))
			}
		}
	})
}

// checkRefusedBy fails unless err is a *RejectedError for call seq by one or more of who, with
// their reasons.
func checkRefusedBy(err error, seq uint64, who ...int) { checkRefusedSince(err, seq, true, who...) }

// checkRefusedSince is checkRefusedBy for ranks that may have refused further calls since: unless
// kept is true, their reasons may be gone.
func checkRefusedSince(err error, seq uint64, kept bool, who ...int) {
	e := errorAs[*transport.RejectedError](err)
	if e.Seq != seq || len(e.Ranks) == 0 || !isSubset(e.Ranks, who) || len(e.Why) != len(e.Ranks) {
		failUnexpected(err, "*RejectedError for call %d by ranks %v, with a reason for each, not %q", seq, who, e.Why)
	}
	for i, r := range e.Ranks {
		why := reason(r, seq)
		why = why[:min(len(why), transport.ReasonBytes)]
		if got := e.Why[i]; got != why && (kept || got != "") {
			failUnexpected(err, "the reason of rank %d, %q, not %q", r, why, got)
		}
	}
}

func isSubset(ranks, of []int) bool {
	return !slices.ContainsFunc(ranks, func(r int) bool { return !slices.Contains(of, r) })
}

func refuseAlone(h *harness, n int) {
	for trial := range 8 * n {
		first, kind := trial%n, trial/n
		who := []int{first}
		if kind%3 == 2 && n > 2 {
			who = append(who, (first+1)%n)
		}
		h.testRefusal(n, trial, 0, kind, who...)
	}
}

func refuseRuns(h *harness, n int) {
	for trial := range 6 * n {
		h.testRefusal(n, trial, trial/n%3+1, 0, trial%n)
	}
}

// testRefusal lets all ranks refuse run calls. Then the ranks of who refuse one more call, which
// the others enter. The bits of kind: the call is Exposed; the others begin to wait after the
// refusal; the first rank that notices makes the group fail, and not the last.
func (h *harness) testRefusal(n, trial, run, kind int, who ...int) {
	exposed, early, hasty := kind&1 != 0, kind&2 != 0, kind&4 != 0
	refused, noticed := newGate(1), newGate(n-len(who))
	what := fmt.Sprintf("ranks %v refuse %d calls and the others %d (Exposed %v, before the others wait %v)", who, run+1, run, exposed, early)
	h.runTitled(what, func(r *rank) {
		r.makeCalls(trial % 3)
		r.refuseCalls(run)
		refuses := slices.Contains(who, r.number)
		r.pause()

		if refuses {
			r.refuseCalls(1)
			if r.number == who[0] {
				refused.pass()
			}
		} else if early {
			r.awaitGate(refused)
		}
		e := r.nextArrival()
		seq := e.Seq // of the call that only who refused
		if refuses {
			seq--
		} else {
			e.Exposed, e.AnyRunner = exposed, exposed
		}
		r.pause()
		_, err := r.Enter(e)
		// A rank that refused need not notice by itself: the others make the group fail.
		if !errors.Is(err, transport.ErrFailed) || !refuses && !hasty {
			checkRefusedBy(err, seq, who...)
		}
		if !refuses {
			noticed.pass()
		}
		if !hasty {
			r.awaitGate(noticed)
		}

		if r.giveUp(e, err) == nil {
			fail("Withdraw returned true for call %d, which not all have entered", e.Seq)
		}
		f := r.Failure()
		if f.Kind != transport.FailureRejected || f.Seq != seq || len(f.Ranks) == 0 || !isSubset(f.Ranks, who) {
			fail("the failure is %+v, want a refusal of call %d by ranks %v", f, seq, who)
		}
	})
}

// refuseOn lets a rank refuse a call, and more of them, while the others enter it.
func refuseOn(h *harness, n int) {
	for trial := range 24 * n {
		who, before, more := trial%n, trial/n%3, trial/n/3%4*7
		what := fmt.Sprintf("rank %d refuses %d calls and the others %d", who, before+1+more, before)
		h.runTitled(what, func(r *rank) {
			r.makeCalls(1)
			r.refuseCalls(before)

			r.pause()
			if r.number == who {
				for range 1 + more {
					r.refuseCalls(1)
					r.yield()
				}
				return
			}

			e := r.nextArrival()
			_, err := r.Enter(e)
			checkRefusedSince(err, e.Seq, before == 0 || more == 0, who)
		})
	}
}
