package transporttest

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// work is what Shared calls say that they touch: little, so that one rank runs
// all bodies, and so much that several should.
var work = [...]int{0, 1, 4 << 10, 16 << 20}

// sharedCalls counts how often each rank's body has been run.
func sharedCalls(h *harness, n int) error {
	const calls = 600
	return h.world(n, 0, func(w *world) error {
		// By kind of call: a rank reads everybody's counts of exposed calls after
		// such a call, and their writers go on only when it has entered the next;
		// calls that are not exposed lie between them.
		var exposedRuns, otherRuns [2][]int
		for p := range 2 {
			exposedRuns[p], otherRuns[p] = make([]int, n), make([]int, n)
		}
		limit := min(w.ranks[0].PayloadLimit(), 32)
		return w.each(func(r *rank) error {
			var exposedCalls, otherCalls [2]int
			for i := range calls {
				e := r.entry()
				e.AnyRunner, e.Work = true, work[i/3%len(work)]
				if e.Exposed = i%3 != 0; e.Exposed {
					e.Displs = []int{r.me, int(e.Seq)}
				}
				e.Payload = data(limit, r.me, int(e.Seq))
				p := e.Seq % 2
				runs, want := exposedRuns[p], &exposedCalls[p]
				if !e.Exposed {
					runs, want = otherRuns[p], &otherCalls[p]
				}
				*want++
				err := r.call(e, func(b *rank) error {
					b.yield()
					runs[b.me]++
					return b.checkPayloads(e.Seq, func(int) int { return limit })
				})
				if err != nil {
					return err
				}
				for q := range n {
					if (e.Exposed || q == r.me) && runs[q] != *want {
						return fmt.Errorf("call %d (exposed %v): rank %d's body has been run %d times instead of %d",
							e.Seq, e.Exposed, q, runs[q], *want)
					}
				}
			}
			return nil
		})
	})
}

// errBody is what a body fails with.
var errBody = errors.New("the body fails")

func sharedFailing(h *harness, n int) error {
	for trial := range 2 * n * len(work) {
		bad, bytes := trial%n, work[trial/n%len(work)]
		err := h.world(n, uint64(trial), func(w *world) error {
			return w.each(func(r *rank) error {
				for range trial % 3 {
					if err := r.enter(r.entry()); err != nil {
						return err
					}
				}
				e := r.entry()
				e.AnyRunner, e.Exposed, e.Work = true, true, bytes
				r.pause()
				err := r.call(e, func(b *rank) error {
					b.yield()
					if b.me == bad {
						return errBody
					}
					return nil
				})
				if !errors.Is(err, errBody) && !errors.Is(err, transport.ErrFailed) {
					return wrong(err, "the body's error or ErrFailed")
				}
				if f := r.Failure(); f == nil || f.Kind != transport.FailureAborted || f.Seq != e.Seq {
					return fmt.Errorf("the recorded failure is %+v", f)
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("the body of rank %d fails (work %d): %w", bad, bytes, err)
		}
	}
	return nil
}
