package transporttest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/transport"
)

// warning is a call of Warn.
type warning struct {
	seq     uint64
	missing []int
	after   time.Duration
}

// timeoutMissing lets every other rank enter a call, each when the one before has timed out,
// so that it is certain which ranks are there. The others never come.
func timeoutMissing(h *harness, n int) {
	const limit = 24 * time.Millisecond
	for _, exposed := range []bool{false, true} {
		turns := newTurns(n + 2)
		h.runTitled(fmt.Sprintf("Exposed %v", exposed), func(r *rank) {
			r.makeCalls(1)
			if r.number%2 == 1 {
				return
			}

			r.awaitGate(turns[r.number])
			defer turns[r.number+2].pass()
			warnings := make(chan warning, 100)
			begin := time.Now()
			r.SetTimeout(transport.Timeout{After: limit, Warn: func(seq uint64, missing []int) {
				warnings <- warning{seq, missing, time.Since(begin)}
			}})

			e := r.nextArrival()
			e.Exposed, e.AnyRunner = exposed, exposed
			_, err := r.Enter(e)
			took := time.Since(begin)
			var missing []int
			for q := range n {
				if q != r.number && (q%2 == 1 || q > r.number) {
					missing = append(missing, q)
				}
			}

			t := errorAs[*transport.TimeoutError](err)
			if t.Seq != e.Seq || len(t.Behind) > 0 || t.After < limit || !slices.Equal(t.Missing, missing) {
				fail("the error is %+v, but ranks %v are missing in call %d, which has a timeout of %v", *t, missing, e.Seq, limit)
			}
			if took < limit {
				fail("timed out after %v instead of %v", took, limit)
			}
			if len(warnings) != 1 {
				fail("Warn was called %d times", len(warnings))
			}

			if m := <-warnings; m.seq != e.Seq || !slices.Equal(m.missing, missing) || m.after < limit/2 {
				fail("Warn was called with call %d and ranks %v after %v, but ranks %v are missing in call %d, half of whose timeout is %v",
					m.seq, m.missing, m.after, missing, e.Seq, limit/2)
			}
		})
	}
}

// timeoutLimit lets ranks 0 and 1 wait with different timeouts for rank 2, which comes when
// rank 0 has given up. At that time the timeout that rank 1 no longer has is over as well.
func timeoutLimit(h *harness, n int) {
	const short, long = 10 * time.Millisecond, 60 * time.Millisecond
	for _, rank1 := range []struct {
		name       string
		set, limit time.Duration
	}{
		{"a long Limit instead of a short timeout", short, time.Hour},
		{"a timeout of 0", 0, 0},
	} {
		waits, gone := newGate(1), newGate(1)
		h.runTitled(rank1.name, func(r *rank) {
			r.makeCalls(1)
			e := r.nextArrival()
			switch r.number {
			case 0: // a short Limit instead of a long timeout
				r.awaitGate(waits)
				r.SetTimeout(transport.Timeout{After: time.Hour})
				e.Limit.After = long
				_, err := r.Enter(e)
				gone.pass()
				errorAs[*transport.TimeoutError](err)
				return

			case 1:
				r.SetTimeout(transport.Timeout{After: short})
				r.SetTimeout(transport.Timeout{After: rank1.set})
				e.Limit.After = rank1.limit
				waits.pass()
			case 2:
				r.awaitGate(gone)
			}

			r.enter(e)
		})
	}
}

// timeoutWarn makes calls that last for half of their timeout: rank 1 comes to each when rank 0
// is warned.
func timeoutWarn(h *harness, n int) {
	inTime(200*time.Millisecond, func(limit time.Duration) {
		warned := []*gate{newGate(1), newGate(1)} // by call
		var warnings []warning                    // rank 0's
		var begin time.Time
		h.run(func(r *rank) {
			if r.number == 0 {
				r.SetTimeout(transport.Timeout{After: limit, Warn: func(seq uint64, missing []int) {
					warnings = append(warnings, warning{seq, missing, time.Since(begin)})
					if i := len(warnings); i <= len(warned) {
						warned[i-1].pass()
					}
				}})
			}

			for i := range warned {
				e := r.nextArrival()
				if r.number == 1 {
					r.awaitGate(warned[i])
					r.enter(e)
					continue
				}

				begin = time.Now()
				r.enter(e)
				if len(warnings) != i+1 || warnings[i].seq != e.Seq {
					fail("in %d calls there were the warnings %+v", i+1, warnings)
				}
				if warnings[i].after < limit/2 {
					fail("in call %d, with a timeout of %v, Warn was called after only %v", e.Seq, limit, warnings[i].after)
				}
			}
		})
	})
}

// timeoutEndless makes a call with a negative timeout: rank 1 comes to it when rank 0 is warned for
// the third time, after more than twice as long.
func timeoutEndless(h *harness, n int) {
	const limit = 16 * time.Millisecond
	warned := newGate(1)
	h.run(func(r *rank) {
		e := r.nextArrival()
		if r.number == 1 {
			r.awaitGate(warned)
			r.enter(e)
			return
		}

		var warnings []warning
		begin := time.Now()
		e.Limit = transport.Timeout{After: -limit, Warn: func(seq uint64, missing []int) {
			if warnings = append(warnings, warning{seq, missing, time.Since(begin)}); len(warnings) == 3 {
				warned.pass()
			}
		}}
		r.enter(e)
		for i, g := range warnings {
			if g.seq != e.Seq || g.after < time.Duration(i)*limit+limit/2 || i < 3 && !slices.Equal(g.missing, []int{1}) {
				fail("warning %d, with a timeout of %v, was %+v", i, -limit, g)
			}
		}
	})
}
