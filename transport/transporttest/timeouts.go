package transporttest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/transport"
)

// warning is what Warn was called with.
type warning struct {
	seq     uint64
	missing []int
	after   time.Duration
}

// timeoutMissing lets every other rank enter a call, one when the one before has
// timed out, so that it is certain who is there. The others never come.
func timeoutMissing(h *harness, n int) error {
	const limit = 24 * time.Millisecond
	for trial := range 2 {
		exposed := trial == 1
		err := h.world(n, 0, func(w *world) error {
			turns := make([]*gate, n+2)
			for i := range turns {
				turns[i] = newGate(1)
			}
			turns[0].pass()
			return w.each(func(r *rank) error {
				if err := r.enter(r.entry()); err != nil {
					return err
				}
				if r.me%2 == 1 {
					return nil
				}
				if err := w.await(turns[r.me].opened); err != nil {
					return err
				}
				defer turns[r.me+2].pass()
				warnings := make(chan warning, 100)
				begin := time.Now()
				r.SetTimeout(transport.Timeout{After: limit, Warn: func(seq uint64, missing []int) {
					warnings <- warning{seq, missing, time.Since(begin)}
				}})
				e := r.entry()
				e.Exposed, e.AnyRunner = exposed, exposed
				_, err := r.Enter(e)
				took := time.Since(begin)
				var missing []int
				for q := range n {
					if q != r.me && (q%2 == 1 || q > r.me) {
						missing = append(missing, q)
					}
				}
				t, ok := errors.AsType[*transport.TimeoutError](err)
				if !ok {
					return wrong(err, "*TimeoutError")
				}
				if t.Seq != e.Seq || len(t.Behind) > 0 || t.After < limit || !slices.Equal(t.Missing, missing) {
					return fmt.Errorf("the error is %+v, but ranks %v are missing in call %d, which has a timeout of %v",
						*t, missing, e.Seq, limit)
				}
				if took < limit {
					return fmt.Errorf("timed out after %v instead of %v", took, limit)
				}
				if len(warnings) != 1 {
					return fmt.Errorf("a call of Warn happened %d times", len(warnings))
				}
				if m := <-warnings; m.seq != e.Seq || !slices.Equal(m.missing, missing) || m.after < limit/2 {
					return fmt.Errorf("what Warn was called with is call %d and ranks %v after %v, but ranks %v are missing in call %d, half of whose timeout is %v",
						m.seq, m.missing, m.after, missing, e.Seq, limit/2)
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("exposed %v: %w", exposed, err)
		}
	}
	return nil
}

// timeoutLimit lets ranks 0 and 1 wait with different timeouts for rank 2, which
// comes when rank 0 has given up, at a time when rank 1 would have, too, if it
// did not have a longer timeout.
func timeoutLimit(h *harness, n int) error {
	const short, long = 10 * time.Millisecond, 60 * time.Millisecond
	own := []struct {
		name       string
		set, limit transport.Timeout
	}{
		{"a long Limit instead of a short timeout", transport.Timeout{After: short}, transport.Timeout{After: time.Hour}},
		{"a timeout of 0", transport.Timeout{}, transport.Timeout{}},
	}
	for _, rank1 := range own {
		err := h.world(n, 0, func(w *world) error {
			waits, gone := newGate(1), newGate(1)
			return w.each(func(r *rank) error {
				if err := r.enter(r.entry()); err != nil {
					return err
				}
				e := r.entry()
				switch r.me {
				case 0:
					if err := w.await(waits.opened); err != nil {
						return err
					}
					r.SetTimeout(transport.Timeout{After: time.Hour})
					e.Limit = transport.Timeout{After: long}
					_, err := r.Enter(e)
					gone.pass()
					if !errors.As(err, new(*transport.TimeoutError)) {
						return fmt.Errorf("a short Limit instead of a long timeout: %w", wrong(err, "*TimeoutError"))
					}
					return nil
				case 1:
					r.SetTimeout(transport.Timeout{After: short})
					r.SetTimeout(rank1.set)
					e.Limit = rank1.limit
					waits.pass()
				case 2:
					if err := w.await(gone.opened); err != nil {
						return err
					}
				}
				return r.enter(e)
			})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", rank1.name, err)
		}
	}
	return nil
}

// timeoutWarn makes calls that last for half of their timeout. It tries again
// with more time if the machine is so slow that they last for all of it.
func timeoutWarn(h *harness, n int) error {
	var err error
	for limit := 200 * time.Millisecond; limit < 2*time.Second; limit *= 2 {
		err = warnInTime(h, n, limit)
		if !errors.As(err, new(*transport.TimeoutError)) {
			return err
		}
	}
	return err
}

// warnInTime lets rank 1 come to each call when rank 0 warns of it.
func warnInTime(h *harness, n int, limit time.Duration) error {
	return h.world(n, 0, func(w *world) error {
		warned := []*gate{newGate(1), newGate(1)} // by call
		var warnings []warning                    // rank 0's
		var begin time.Time
		return w.each(func(r *rank) error {
			if r.me == 0 {
				r.SetTimeout(transport.Timeout{After: limit, Warn: func(seq uint64, missing []int) {
					warnings = append(warnings, warning{seq, missing, time.Since(begin)})
					if i := len(warnings); i <= len(warned) {
						warned[i-1].pass()
					}
				}})
			}
			for i := range warned {
				e := r.entry()
				if r.me == 1 {
					if err := w.await(warned[i].opened); err != nil {
						return err
					}
				} else {
					begin = time.Now()
				}
				if err := r.enter(e); err != nil {
					return err
				}
				if r.me == 1 {
					continue
				}
				if len(warnings) != i+1 || warnings[i].seq != e.Seq {
					return fmt.Errorf("in %d calls there were the warnings %+v", i+1, warnings)
				}
				if warnings[i].after < limit/2 {
					return fmt.Errorf("in call %d, with a timeout of %v, Warn was called after only %v", e.Seq, limit, warnings[i].after)
				}
			}
			return nil
		})
	})
}
