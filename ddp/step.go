package ddp

import (
	"cmp"
	"context"

	"github.com/goccl/goccl/ccl"
)

// step is what has happened in a step on this rank. It begins with the first Ready, or with Wait,
// and ends in Wait.
type step struct {
	hasBegun bool
	next     int       // bucket to start
	ready    []bool    // by parameter
	order    []int     // in which parameters were ready
	counting *ccl.Work // within Join: gathers join.trains
	sharing  *ccl.Work // if parameters may be unused: gathers unused.used
	mistake  error     // of this rank, in a call of Ready, or of its hook

	// freshOf has the parameters of this step by the first element of what ReadyGrad got.
	freshOf map[any]int
}

// newStep returns a step of a number of parameters that has not begun.
func newStep(parameters int) step {
	return step{ready: make([]bool, parameters), freshOf: map[any]int{}}
}

// reset makes the step one that has not begun.
func (s *step) reset() {
	clear(s.ready)
	clear(s.freshOf)
	*s = step{ready: s.ready, order: s.order[:0], freshOf: s.freshOf}
}

// noteMistake keeps the first mistake in a call of Ready for Wait.
func (s *step) noteMistake(mistake error) { s.mistake = cmp.Or(s.mistake, mistake) }

// begin begins a step, if it has not begun.
func (r *Reducer) begin() {
	if r.step.hasBegun {
		return
	}
	r.step.hasBegun = true
	r.mark(backward)
	clear(r.unused.used)
	if r.join.isOn {
		if r.join.early != nil { // train goes on, and no other rank does
			r.comm.Abort(r.join.early)
		}
		r.countRanks(1)
	}

	for i, isOutside := range r.unused.outside {
		if isOutside {
			r.putZeros(i)
		}
	}
}

// endStep forgets what has happened in the step.
func (r *Reducer) endStep() {
	r.step.reset()
	r.logical.reset()
	clear(r.noSync.accumulated)
	for i := range r.buckets {
		b := &r.buckets[i]
		b.pending, b.work, b.isSpent = len(b.parameters), nil, false
	}
}

// await waits for a call of the step. If ctx ends first, or the call fails, the group fails. All
// ranks may have completed the call by then: it has succeeded in that case, and the next one fails,
// on all ranks alike.
func (r *Reducer) await(ctx context.Context, w *ccl.Work) error {
	err := w.Wait(ctx)
	if err == nil {
		return nil
	}
	r.comm.Abort(err)
	if w.Wait(context.Background()) == nil { // it ends at once
		return nil
	}
	return err
}

// awaitAll waits until no call of the step uses the Reducer's memory, or gradients that are reduced
// in place. The group has failed or ended.
func (r *Reducer) awaitAll() {
	works := []*ccl.Work{r.step.counting, r.step.sharing}
	for _, b := range r.buckets {
		works = append(works, b.work)
	}
	for _, w := range works {
		if w != nil {
			_ = w.Wait(context.Background()) // it ends at once
		}
	}
}
