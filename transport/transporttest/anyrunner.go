package transporttest

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// work is the Work of AnyRunner calls: so little that one rank runs all bodies, and so
// much that several ranks should.
var work = [...]int{0, 1, 4 << 10, 16 << 20}

// anyRunner counts how many times each rank's body is run.
func anyRunner(h *harness, n int) {
	// By kind of call: a rank reads all counts of Exposed calls after such a call, and
	// their writers go on only when it has entered the next; calls that are not Exposed
	// lie between them.
	var runs [2][2][]int // by Exposed and parity
	for kind := range runs {
		runs[kind] = [2][]int{make([]int, n), make([]int, n)}
	}
	h.each(n, 0, "", func(r *rank) {
		limit := min(r.PayloadLimit(), 32)
		var calls [2][2]int
		for i := range 600 {
			e := r.arrival()
			e.AnyRunner, e.Work, e.Exposed = true, work[i/3%len(work)], i%3 != 0
			if e.Exposed {
				e.Displs = displsOf(r.me, e.Seq)
			}
			e.Payload = data(limit, r.me, int(e.Seq))
			kind, parity := min(i%3, 1), e.Seq%2
			runs, want := runs[kind][parity], &calls[kind][parity]
			*want++
			must(r.call(e, func(b *rank) {
				b.yield()
				runs[b.me]++
				b.checkPayloads(e.Seq, func(int) int { return limit }, "in a body")
			}))
			for q := range n {
				if (e.Exposed || q == r.me) && runs[q] != *want {
					fail("call %d (Exposed %v): rank %d's body has been run %d times instead of %d",
						e.Seq, e.Exposed, q, runs[q], *want)
				}
			}
		}
	})
}

// errBody is what a body fails with.
var errBody = errors.New("the body fails")

func anyRunnerFailing(h *harness, n int) {
	for trial := range 2 * n * len(work) {
		bad, bytes := trial%n, work[trial/n%len(work)]
		h.each(n, uint64(trial), fmt.Sprintf("the body of rank %d fails (Work %d)", bad, bytes), func(r *rank) {
			r.sync(trial % 3)
			e := r.arrival()
			e.AnyRunner, e.Exposed, e.Work = true, true, bytes
			r.pause()
			err := r.call(e, func(b *rank) {
				b.yield()
				if b.me == bad {
					must(errBody)
				}
			})
			if !errors.Is(err, errBody) {
				expect(err, transport.ErrFailed)
			}
			if f := r.Failure(); f == nil || f.Kind != transport.FailureAborted || f.Seq != e.Seq {
				fail("the recorded failure is %+v", f)
			}
		})
	}
}
