package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/goccl/goccl/transport"
)

// Ways in which the last call of a random group can fail because of one rank,
// beside closes and fails.
const (
	refuses = fails + 1 + iota
	mismatches
	cancels
	endings
)

var endingNames = [endings]string{"all well", "departure", "failure", "refusal", "mismatch", "cancelled context"}

// random lets all ranks follow the same script, with delays of their own.
func random(h *harness, n int) error {
	for trial := range 96 {
		if err := randomGroup(h, n, uint64(trial)); err != nil {
			return fmt.Errorf("trial %d: %w", trial, err)
		}
	}
	return nil
}

func randomGroup(h *harness, n int, seed uint64) error {
	end := rand.New(rand.NewPCG(seed, 1))
	steps, culprit, ending := end.IntN(30), end.IntN(n), int(seed)%endings
	return h.world(n, seed, func(w *world) error {
		nothingFailed := true // at the culprit, if its context was cancelled
		err := w.each(func(r *rank) error {
			script := rand.New(rand.NewPCG(seed, 0))
			for range steps {
				if err := r.anyCall(script); err != nil {
					return err
				}
				r.yield()
			}
			if r.me == culprit {
				err := r.misbehave(ending, script)
				if ending == cancels {
					nothingFailed = err == nil && !r.Failed()
				}
				return allowed(err, ending, r.me, culprit, r.seq)
			}
			return allowed(r.finalCall(script), ending, r.me, culprit, r.seq)
		})
		if err != nil {
			return fmt.Errorf("%d calls, then %s by rank %d: %w", steps, endingNames[ending], culprit, err)
		}
		err = w.each(func(r *rank) error {
			if r.me == culprit && ending == closes {
				return nil
			}
			f := r.Failure()
			if ending == nothing || ending == cancels && nothingFailed {
				if f != nil {
					return fmt.Errorf("nothing failed, but the failure is %+v", f)
				}
				return nil
			}
			return expectedFailure(f, ending, culprit)
		})
		if err != nil {
			return fmt.Errorf("after %s by rank %d: %w", endingNames[ending], culprit, err)
		}
		return nil
	})
}

// anyCall makes the script's next call.
func (r *rank) anyCall(script *rand.Rand) error {
	switch script.IntN(5) {
	case 0:
		return r.enter(r.entry())
	case 1:
		limit := min(r.PayloadLimit(), 4096)
		a, b := script.IntN(limit+1), script.IntN(limit+1)
		return r.payload(func(q int) int { return [...]int{a, b}[q%2] })
	case 2:
		for range 1 + script.IntN(3) {
			r.refuse()
		}
		return nil
	}
	return r.finalCall(script)
}

// finalCall makes the script's next call in a way that ends well also if it
// fails.
func (r *rank) finalCall(script *rand.Rand) error {
	unit := 500
	if s := r.Staging(); s != nil {
		unit = min(s.PieceBytes(), unit)
	}
	a, b := script.IntN(4*unit), script.IntN(4*unit)
	flag := script.IntN(2) == 0
	length := func(q int) int { return [...]int{a, b, 0}[q%3] }
	switch script.IntN(4) {
	case 0:
		return r.window(a, flag, b%2 == 0)
	case 1:
		return r.gather(length, flag)
	case 2:
		return r.allPairs(func(from int) int { return length(from) / 4 })
	default:
		e := r.entry()
		n := min(r.PayloadLimit(), a)
		e.Payload = data(n, r.me, int(e.Seq))
		e.AnyRunner, e.Work, e.Exposed = true, work[b%len(work)], flag
		return r.call(e, func(b *rank) error {
			return b.checkPayloads(e.Seq, func(int) int { return n })
		})
	}
}

// misbehave is what the culprit does instead of the last call.
func (r *rank) misbehave(ending int, script *rand.Rand) error {
	r.pause()
	switch ending {
	case refuses:
		r.refuse()
		r.pause()
	case mismatches:
		r.badHash = 1
	case cancels:
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		times := r.rnd.IntN(300)
		go func() {
			yield(times)
			cancel()
		}()
		r.ctx = ctx
	case closes, fails:
		r.goWay(ending)
		return nil
	}
	return r.finalCall(script)
}

// allowed complains about the error of rank me's last call.
func allowed(err error, ending, me, culprit int, seq uint64) error {
	if err == nil {
		if ending == nothing || ending == cancels || (ending == closes || ending == fails) && me == culprit {
			return nil
		}
		return wrong(err, "an error")
	}
	ok := errors.Is(err, transport.ErrFailed)
	switch ending {
	case nothing:
		ok = false
	case closes:
		e, is := errors.AsType[*transport.PeerLostError](err)
		ok = ok || is && e.Rank == culprit
	case refuses:
		at := seq // of the last call; the refusal was the culprit's last but one
		if me == culprit {
			at--
		}
		ok = ok || refusedBy(err, at, culprit) == nil
	case mismatches:
		ok = ok || errors.As(err, new(*transport.MismatchError))
	case cancels:
		ok = ok && me != culprit || errors.Is(err, context.Canceled) && me == culprit
	}
	if !ok {
		return wrong(err, "what a %s by rank %d leads to", endingNames[ending], culprit)
	}
	return nil
}

// expectedFailure complains about the failure of a group that culprit brought
// down.
func expectedFailure(f *transport.Failure, ending, culprit int) error {
	kinds := [endings]transport.FailureKind{
		closes: transport.FailurePeerLost, fails: failureBy(culprit, 0).Kind, refuses: transport.FailureRefused,
		mismatches: transport.FailureMismatch, cancels: transport.FailureAborted,
	}
	switch {
	case f == nil:
		return errors.New("there is no failure")
	case f.Kind != kinds[ending]:
	case ending == fails:
		return sameFailure(f, failureBy(culprit, 0))
	case ending == cancels && f.By != culprit:
	case (ending == closes || ending == refuses) && (len(f.Ranks) != 1 || f.Ranks[0] != culprit):
	default:
		return nil
	}
	return fmt.Errorf("the failure is %+v", f)
}
