package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/goccl/goccl/transport"
)

// ending is how the last call of a random group ends because of one rank.
type ending int

const (
	endsWell ending = iota
	endsByDeparture
	endsByFailure
	endsByRefusal
	endsByMismatch
	endsByContext
	endings
)

func (e ending) String() string {
	return [...]string{"all well", "departure", "failure", "refusal", "mismatch", "cancelled context"}[e]
}

// random lets all ranks follow the same script, with delays of their own.
func random(h *harness, n int) {
	for trial := range uint64(96) {
		randomGroup(h, n, trial)
	}
}

func randomGroup(h *harness, n int, seed uint64) {
	end := rand.New(rand.NewPCG(seed, 1))
	steps, culprit, ending := end.IntN(30), end.IntN(n), ending(seed)%endings
	nothingFailed := true // at the culprit, if its context was cancelled
	all := newGate(n)
	h.each(n, seed, fmt.Sprintf("trial %d: %d calls, then %s by rank %d", seed, steps, ending, culprit), func(r *rank) {
		script := rand.New(rand.NewPCG(seed, 0))
		for range steps {
			must(r.anyCall(script))
			r.yield()
		}
		var err error
		if r.me == culprit {
			err = r.misbehave(ending, script)
			nothingFailed = ending != endsByContext || err == nil && !r.Failed()
		} else {
			err = r.finalCall(script)
		}
		r.checkEnd(err, ending, culprit)
		r.meet(all)
		switch f := r.Failure(); {
		case r.me == culprit && ending == endsByDeparture:
		case ending == endsWell || ending == endsByContext && nothingFailed:
			if f != nil {
				fail("nothing failed, but the failure is %+v", f)
			}
		default:
			checkFailure(f, ending, culprit)
		}
	})
}

// anyCall makes the script's next call.
func (r *rank) anyCall(script *rand.Rand) error {
	switch script.IntN(5) {
	case 0:
		r.sync(1)
	case 1:
		limit := min(r.PayloadLimit(), 4096)
		a, b := script.IntN(limit+1), script.IntN(limit+1)
		r.payload(func(q int) int { return [...]int{a, b}[q%2] })
	case 2:
		r.refuse(1 + script.IntN(3))
	default:
		return r.finalCall(script)
	}
	return nil
}

// finalCall makes the script's next call in a way that ends well also if it fails.
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
	}
	e := r.arrival()
	n := min(r.PayloadLimit(), a)
	e.Payload = data(n, r.me, int(e.Seq))
	e.AnyRunner, e.Work, e.Exposed = true, work[b%len(work)], flag
	return r.call(e, func(b *rank) { b.checkPayloads(e.Seq, func(int) int { return n }, "in a body") })
}

// misbehave is what the culprit does instead of the last call, or before it.
func (r *rank) misbehave(ending ending, script *rand.Rand) error {
	r.pause()
	switch ending {
	case endsByDeparture:
		return r.Close()
	case endsByFailure:
		r.Fail(failureBy(r.me, 0))
		return nil
	case endsByRefusal:
		r.refuse(1)
		r.pause()
	case endsByMismatch:
		r.badHash = 1
	case endsByContext:
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		times := r.rnd.IntN(300)
		go func() {
			yield(times)
			cancel()
		}()
		r.ctx = ctx
	}
	return r.finalCall(script)
}

// checkEnd fails unless err may be the error of this rank's last call.
func (r *rank) checkEnd(err error, ending ending, culprit int) {
	isCulprit := r.me == culprit
	gone := isCulprit && (ending == endsByDeparture || ending == endsByFailure)
	if err == nil && (gone || ending == endsWell || ending == endsByContext) {
		return
	}
	if errors.Is(err, transport.ErrFailed) && ending != endsWell && !(isCulprit && ending == endsByContext) {
		return
	}
	switch ending {
	case endsByDeparture:
		lost(err, culprit)
	case endsByRefusal:
		at := r.seq // the last call; the culprit refused the one before
		if isCulprit {
			at--
		}
		refusedBy(err, at, culprit)
	case endsByMismatch:
		as[*transport.MismatchError](err)
	case endsByContext:
		if isCulprit {
			expect(err, context.Canceled)
			return
		}
		fallthrough
	default:
		wrong(err, "what a %s by rank %d leads to", ending, culprit)
	}
}

// checkFailure fails unless f is the failure of a group that culprit brought down.
func checkFailure(f *transport.Failure, ending ending, culprit int) {
	kinds := [endings]transport.FailureKind{
		endsByDeparture: transport.FailurePeerLost, endsByFailure: failureBy(culprit, 0).Kind, endsByRefusal: transport.FailureRefused,
		endsByMismatch: transport.FailureMismatch, endsByContext: transport.FailureAborted,
	}
	ok := f != nil && f.Kind == kinds[ending]
	switch {
	case !ok:
	case ending == endsByFailure:
		sameFailure(f, failureBy(culprit, 0), "was recorded")
	case ending == endsByContext:
		ok = f.By == culprit
	case ending != endsByMismatch:
		ok = len(f.Ranks) == 1 && f.Ranks[0] == culprit
	}
	if !ok {
		fail("the failure is %+v", f)
	}
}
