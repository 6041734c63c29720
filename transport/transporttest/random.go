package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// In random, an event ends the last call because of one rank, the culprit.
var (
	nothing = &event{
		name:    "nothing",
		happen:  func(*rank, func()) {},
		outcome: func(_ *meeting, err error) { failIf(err) },
	}
	mismatched = &event{
		name:    "mismatch",
		happen:  func(peer *rank, _ func()) { peer.badHash = 1 },
		outcome: func(_ *meeting, err error) { errorAs[*transport.MismatchError](err) },
	}
	endings = []*event{nothing, departure, failure, refusal, mismatched, cancelled}
)

// random lets all ranks follow the same script, with delays of their own.
func random(h *harness, n int) {
	for trial := range uint64(96) {
		randomGroup(h, n, trial)
	}
}

func randomGroup(h *harness, n int, seed uint64) {
	end := rand.New(rand.NewPCG(seed, 1))
	steps, culprit, ev := end.IntN(30), end.IntN(n), endings[seed%uint64(len(endings))]
	nothingFailed := ev == nothing // known to the culprit, if its context is cancelled
	all := newGate(n)
	h.runTitled(fmt.Sprintf("trial %d: %d calls, then %s by rank %d", seed, steps, ev.name, culprit), func(r *rank) {
		script := rand.New(rand.NewPCG(seed, 0))
		for range steps {
			failIf(r.anyCall(script))
			r.yield()
		}

		var err error
		if r.number == culprit {
			err = r.misbehave(ev, script)
			nothingFailed = ev == nothing || ev == cancelled && err == nil && !r.Failed()
		} else {
			err = r.finalCall(script)
		}

		r.checkEnd(err, ev, culprit)
		r.passAndAwait(all)
		switch f := r.Failure(); {
		case r.number == culprit && ev == departure:
		case !nothingFailed:
			checkFailure(f, ev, culprit)
		case f != nil:
			fail("nothing failed, but the failure is %+v", f)
		}
	})
}

// anyCall makes the script's next call.
func (r *rank) anyCall(script *rand.Rand) error {
	switch script.IntN(5) {
	case 0:
		r.makeCalls(1)
	case 1:
		limit := min(r.PayloadLimit(), 4096)
		a, b := script.IntN(limit+1), script.IntN(limit+1)
		r.makePayloadCall(func(q int) int { return [...]int{a, b}[q%2] })

	case 2:
		r.refuseCalls(1 + script.IntN(3))
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
		return r.makeViewCall(a, flag, b%2 == 0)
	case 1:
		return r.makeUnevenViewCall(length, false, flag)
	case 2:
		return r.exchangeAll(func(from int) int { return length(from) / 4 })
	}

	e := r.nextArrival()
	n := min(r.PayloadLimit(), a)
	e.Payload = data(n, r.number, int(e.Seq))
	e.AnyRunner, e.Work, e.Exposed = true, workAmounts[b%len(workAmounts)], flag
	return r.makeCall(e, func(b *rank) { b.checkPayloads(e.Seq, func(int) int { return n }, "in a body") })
}

// misbehave lets ev happen and makes the last call, if the culprit can still make one.
func (r *rank) misbehave(ev *event, script *rand.Rand) error {
	r.pause()
	if ev == cancelled {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		times := r.rnd.IntN(300)
		interleave.Go(func() {
			yield(times)
			ev.happen(r, cancel)
		})
		r.ctx = ctx
		return r.finalCall(script)
	}

	if ev == refusal {
		r.seq++
	}
	if ev == failure {
		r.Fail(failureBy(r.number, 0)) // at this endpoint: the failure is compared
		return nil
	}
	if ev.happen(r, nil); ev == departure {
		return nil
	}
	r.pause()
	return r.finalCall(script)
}

// checkEnd fails unless err may be the error of this rank's last call.
func (r *rank) checkEnd(err error, ev *event, culprit int) {
	m := &meeting{rank: r, e: &transport.Arrival{Seq: r.seq}, peer: culprit}
	isCulprit := r.number == culprit
	if isCulprit {
		m.e.Seq-- // it refused the call before
	}
	switch {
	case err == nil && (ev == cancelled || isCulprit && (ev == departure || ev == failure)):
	case ev == cancelled && !isCulprit:
		expectError(err, transport.ErrFailed)
	case ev == nothing || ev == cancelled || !errors.Is(err, transport.ErrFailed):
		ev.outcome(m, err)
	}
}

// checkFailure fails unless f is the failure of a group that culprit brought down.
func checkFailure(f *transport.Failure, ev *event, culprit int) {
	kind := map[*event]transport.FailureKind{
		departure: transport.FailurePeerLost, failure: failureBy(culprit, 0).Kind, refusal: transport.FailureRejected,
		mismatched: transport.FailureMismatch, cancelled: transport.FailureAborted,
	}[ev]
	ok := f != nil && f.Kind == kind
	switch {
	case !ok:
	case ev == failure:
		sameFailure(f, failureBy(culprit, 0), "was recorded")
	case ev == cancelled:
		ok = f.By == culprit
	case ev != mismatched:
		ok = slices.Equal(f.Ranks, []int{culprit})
	}

	if !ok {
		fail("the failure is %+v", f)
	}
}
