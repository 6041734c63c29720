package transporttest

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// workAmounts are the Work of AnyRunner calls: so little that one rank runs all bodies, and so
// much that several ranks should.
var workAmounts = [...]int{0, 1, 4 << 10, 16 << 20}

// anyRunner counts how many times each rank's body is run.
func anyRunner(h *harness, n int) {
	// By kind of call: a rank reads all counts of Exposed calls after such a call, and
	// their writers go on only when it has entered the next; calls that are not Exposed
	// lie between them.
	var runs [2][2][]int // by Exposed and parity
	for kind := range runs {
		runs[kind] = [2][]int{make([]int, n), make([]int, n)}
	}

	h.run(func(r *rank) {
		limit := min(r.PayloadLimit(), 32)
		var calls [2][2]int
		for i := range 600 {
			e := r.nextArrival()
			e.AnyRunner, e.Work, e.Exposed = true, workAmounts[i/3%len(workAmounts)], i%3 != 0
			if e.Exposed {
				e.Displs = displsOf(r.number, e.Seq)
			}

			e.Payload = data(limit, r.number, int(e.Seq))
			kind, parity := min(i%3, 1), e.Seq%2
			runs, want := runs[kind][parity], &calls[kind][parity]
			*want++
			failIf(r.makeCall(e, func(b *rank) {
				b.yield()
				runs[b.number]++
				b.checkPayloads(e.Seq, func(int) int { return limit }, "in a body")
			}))

			for q := range n {
				if (e.Exposed || q == r.number) && runs[q] != *want {
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
	for trial := range 2 * n * len(workAmounts) {
		bad, bytes := trial%n, workAmounts[trial/n%len(workAmounts)]
		h.runTitled(fmt.Sprintf("the body of rank %d fails (Work %d)", bad, bytes), func(r *rank) {
			r.makeCalls(trial % 3)
			e := r.nextArrival()
			e.AnyRunner, e.Exposed, e.Work = true, true, bytes
			r.pause()

			err := r.makeCall(e, func(b *rank) {
				b.yield()
				if b.number == bad {
					failIf(errBody)
				}
			})
			if !errors.Is(err, errBody) {
				expectError(err, transport.ErrFailed)
			}

			if f := r.Failure(); f == nil || f.Kind != transport.FailureAborted || f.Seq != e.Seq {
				fail("the recorded failure is %+v", f)
			}
		})
	}
}
