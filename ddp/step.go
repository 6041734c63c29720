package ddp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
)

// step is what has happened in a step on this rank. It begins with the first Ready, or with Wait,
// and ends in Wait.
type step struct {
	hasBegun bool
	next     int       // bucket to start
	ready    []bool    // by parameter
	order    []uint32  // in which parameters were ready
	census   *ccl.Work // within Join: gathers join.trains
	used     *ccl.Work // if parameters may be unused: gathers unused.used
	mistake  error     // of this rank, in a call of Ready, or of its hook
}

// reset makes the step one that has not begun.
func (s *step) reset() {
	clear(s.ready)
	*s = step{ready: s.ready, order: s.order[:0]}
}

// noteMistake keeps the first mistake in a call of Ready for Wait.
func (s *step) noteMistake(format string, args ...any) {
	if s.mistake == nil {
		s.mistake = &ccl.InvalidArgumentError{Operation: "ddp.Ready", Message: fmt.Sprintf(format, args...)}
	}
}

// outsideStep is a mistake with StaticGraph.
const outsideStep = "was ready, and was not in the first step: set FindUnused in place of StaticGraph if steps differ"

// Ready says that the gradient of a parameter is final in this step. It never waits. After Ready
// the gradient must not be used until Wait has returned. What is wrong with the call is an error of
// Wait.
func (r *Reducer[T]) Ready(parameter int) { r.noteReady(parameter, nil, false) }

// ReadyGrad is Ready for a program that allocates gradients anew: the parameter's gradient is this
// slice until the next ReadyGrad. Grad returns it, Ready reads it, and Wait leaves the mean in it.
//
// It is as long as the parameter, and memory of this rank and parameter alone: two parameters that
// are ready with the same slice are a mistake. It is copied, also if it is long.
// Within NoSync the slice counts that is given last: it holds the sum of all batches.
func (r *Reducer[T]) ReadyGrad(parameter int, gradient []T) { r.noteReady(parameter, gradient, true) }

func (r *Reducer[T]) noteReady(parameter int, gradient []T, isGiven bool) {
	if !r.comm.Retain() {
		return // Wait returns the error
	}
	defer r.comm.Release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if parameter < 0 || parameter >= len(r.params) {
		r.step.noteMistake("parameter %d was ready, and there are %d, numbered from 0 as New got them", parameter, len(r.params))
		return
	}
	if isGiven && len(gradient) != r.lengths[parameter] {
		r.step.noteMistake("parameter %q has %d elements, and the gradient that ReadyGrad got %d", r.params[parameter].Name, r.lengths[parameter], len(gradient))
		return
	}
	if r.isQuiet {
		r.accumulated[parameter] = true
		if isGiven {
			r.given[parameter] = gradient
		}
		return
	}

	r.begin()
	if r.step.ready[parameter] {
		why := "was ready twice in a step: call Wait between batches, or accumulate them within NoSync"
		if r.unused.outside[parameter] {
			why = outsideStep
		}
		r.step.noteMistake("parameter %q %s", r.params[parameter].Name, why)
		return
	}
	if isGiven {
		r.given[parameter] = gradient
	}
	r.putGradient(parameter)
}

// begin begins a step, if it has not begun.
func (r *Reducer[T]) begin() {
	if r.step.hasBegun {
		return
	}
	r.step.hasBegun = true
	r.mark(backward)
	clear(r.unused.used)
	if r.join.isOn {
		r.countRanks(1)
	}
	for i, outside := range r.unused.outside {
		if outside {
			r.putZeros(i)
		}
	}
}

// putGradient puts this rank's gradient of a parameter in its bucket.
func (r *Reducer[T]) putGradient(parameter int) {
	r.unused.used[parameter] = 1
	r.step.order = append(r.step.order, uint32(parameter))
	r.noteShared(parameter)
	copy(r.slot(parameter), r.gradientBeside(parameter))
	r.complete(parameter)
}

// noteShared notes a mistake if the gradient that ReadyGrad got is also that of another parameter.
func (r *Reducer[T]) noteShared(parameter int) {
	given := r.given[parameter]
	if len(given) == 0 {
		return
	}
	if other, isShared := r.owners[&given[0]]; isShared {
		r.step.noteMistake("parameters %q and %q were ready with the same gradient: ReadyGrad takes a slice of each parameter's own", r.params[other].Name, r.params[parameter].Name)
	}
	r.owners[&given[0]] = parameter
}

// putZeros puts zeros in the bucket of a parameter.
func (r *Reducer[T]) putZeros(parameter int) {
	clear(r.slot(parameter))
	r.complete(parameter)
}

// complete notes that the gradient of a parameter is in its bucket, and starts all buckets whose
// turn it is.
func (r *Reducer[T]) complete(parameter int) {
	r.step.ready[parameter] = true
	r.buckets[r.places[parameter].bucket].pending--
	for r.step.next < len(r.buckets) && r.buckets[r.step.next].pending == 0 {
		r.step.next++
		r.start(r.buckets[r.step.next-1])
	}
}

// What all ranks get if a hook does not return as it must.
var (
	errNoWork   = errors.New("ddp: Hook.Start has returned no Work: it has returned nil, has panicked, or has ended its goroutine")
	errNotEnded = errors.New("ddp: Wait has not ended the step: the hook has panicked, or has ended its goroutine")
)

// start starts the reduction of a bucket. If the hook does not, the step fails on all ranks, also
// where the program recovers from a panic.
func (r *Reducer[T]) start(b *Bucket[T]) {
	defer func() {
		if b.work == nil {
			r.step.mistake = errNoWork // also with one rank, whose group does not fail
			r.comm.Abort(errNoWork)
			b.work = ccl.AllReduceAsync(context.Background(), r.comm, b.Gradients, b.Gradients, b.Op) // fails at once
		}
	}()
	b.work = r.hook.Start(b)
}

// Wait ends the step: it waits until all gradients are the mean over all ranks. If a gradient is
// not ready on this rank, and no option allows that, all ranks fail: this one with *UnreadyError,
// the others with *ccl.MismatchError. If Wait fails, also because ctx ends, the gradients are
// undefined, the Reducer's group has failed, and all ranks make a new Reducer or end. An exception
// is a mistake in a call of Ready: only this rank's Wait fails, and the group lives on.
//
// After the end of the Reducer or of its group the error is ccl.ErrClosed, within NoSync as well.
func (r *Reducer[T]) Wait(ctx context.Context) error {
	if err := r.retain("Wait"); err != nil {
		r.abandonStep()
		return err
	}
	defer r.comm.Release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isQuiet {
		return nil
	}

	r.begin()
	r.mark(waiting)
	return r.completeStep(ctx)
}

// completeStep waits for the step and ends it, also if the hook panics, and returns the error of Wait.
func (r *Reducer[T]) completeStep(ctx context.Context) (err error) {
	err = errNotEnded
	defer func() {
		if err == nil {
			r.number++
			r.mark(computing)
		} else {
			r.stop(ctx, err)
			r.mark(failed)
		}
		err = errors.Join(err, r.step.mistake)
		r.endStep()
	}()
	return r.finish(ctx)
}

// endStep forgets what has happened in the step.
func (r *Reducer[T]) endStep() {
	r.step.reset()
	clear(r.accumulated)
	clear(r.owners)
	for _, b := range r.buckets {
		b.pending, b.work = len(b.Parameters), nil
	}
}

// stop fails the step on all ranks, unless they know, and waits until no call uses the Reducer's
// memory. They do not know if ctx has ended before they have come to the step.
func (r *Reducer[T]) stop(ctx context.Context, err error) {
	if _, rejected := errors.AsType[*UnreadyError](err); !rejected || ctx.Err() != nil {
		r.comm.Abort(err)
	}
	r.settle()
}

// settle waits until no call uses the Reducer's memory, or gradients that are reduced in place. The
// group has failed or ended.
func (r *Reducer[T]) settle() {
	works := []*ccl.Work{r.step.census, r.step.used}
	for _, b := range r.buckets {
		works = append(works, b.work)
	}
	for _, w := range works {
		if w != nil {
			_ = w.Wait(context.Background()) // it ends at once
		}
	}
}

// await waits for a call of the step. If ctx ends first, or the call fails, the group fails. All
// ranks may have completed the call by then: it has succeeded in that case, and the next one fails,
// on all ranks alike.
func (r *Reducer[T]) await(ctx context.Context, w *ccl.Work) error {
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

// finish completes the step, up to its last call.
func (r *Reducer[T]) finish(ctx context.Context) error {
	waited := time.Now()
	if err := r.completeRest(ctx); err != nil {
		return err
	}
	trains, root, err := r.awaitCensus(ctx)
	if err != nil {
		return err
	}

	r.shareUsed()
	if err := r.finishBuckets(ctx, trains); err != nil {
		return err
	}
	r.note(waited)
	if err := r.awaitUsed(ctx); err != nil {
		return err
	}
	if err := r.awaitHooks(ctx); err != nil {
		return err
	}

	r.copyBack()
	r.fixUsed()
	if err := r.rebuild(ctx, root); err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	if r.opts.BroadcastBuffers {
		if err := r.shareBuffers(ctx, root); err != nil {
			return fmt.Errorf("ddp: %w", err)
		}
	}
	if r.verifiesStep() {
		return r.verify(ctx)
	}
	return nil
}

// completeRest completes what this rank has not called Ready for, or fails all ranks' remaining
// buckets.
func (r *Reducer[T]) completeRest(ctx context.Context) error {
	r.putAccumulated()
	if r.step.next == len(r.buckets) {
		return nil
	}
	if r.findsUnused() {
		for i, ready := range r.step.ready {
			if !ready {
				r.putZeros(i)
			}
		}
		return nil
	}

	e := &UnreadyError{Rank: r.comm.Rank(), Static: r.opts.StaticGraph}
	for i, ready := range r.step.ready {
		if !ready {
			e.Parameters = append(e.Parameters, r.params[i].Name)
		}
	}
	if len(e.Parameters) == 0 {
		return errNoWork
	}
	for range r.buckets[r.step.next:] {
		_ = r.comm.Reject(ctx, e) // in place of the bucket
	}
	return e
}

// finishBuckets waits for the buckets in their order, and makes their results means over the ranks
// that train.
func (r *Reducer[T]) finishBuckets(ctx context.Context, trains int) error {
	for _, b := range r.buckets {
		if err := r.await(ctx, b.work); err != nil {
			return r.bucketError(b, err)
		}
		if err := r.hook.Finish(b); err != nil {
			return r.bucketError(b, err)
		}
		if r.join.isOn {
			b.divide(trains)
		}
	}
	return nil
}

// awaitHooks waits until Finish has succeeded on all ranks. A rank on which it has failed aborts
// the group in place of this call, which may be the last of the step: without it the others would
// not know before the next step.
func (r *Reducer[T]) awaitHooks(ctx context.Context) error {
	if r.opts.Hook == nil {
		return nil
	}
	if err := r.comm.Barrier(ctx, ccl.WithLabel("hooks"), ccl.WithKey("ddp hooks")); err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	return nil
}

// copyBack copies means to the program's gradients, except where no rank has used the parameter.
func (r *Reducer[T]) copyBack() {
	for i := range r.params {
		if r.isUsed(i) {
			copy(r.gradientBeside(i), r.slot(i))
		}
	}
}

// rebuild arranges the buckets, once, in the order in which the gradients of a rank were ready.
func (r *Reducer[T]) rebuild(ctx context.Context, root int) error {
	if r.rebuilt || r.findsUnused() {
		return nil
	}
	r.rebuilt = true
	order := make([]uint32, len(r.params))
	n := copy(order, r.step.order)
	for i := range r.params { // those that are never ready come last
		if !slices.Contains(r.step.order, uint32(i)) {
			order[n] = uint32(i)
			n++
		}
	}
	if err := ccl.Broadcast(ctx, r.comm, order, root); err != nil {
		return err
	}
	ints := make([]int, len(order))
	for i, p := range order {
		ints[i] = int(p)
	}
	r.arrange(ints)
	return nil
}
