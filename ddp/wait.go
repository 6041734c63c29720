package ddp

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/ccl"
)

// Wait ends the step: it waits until all gradients are the mean over all ranks, or logical shards.
//
// If a gradient is not ready on this rank, and no option allows that, all ranks fail: this one
// with *UnreadyError, the others with its text (see the package comment).
//
// If Wait fails, also because ctx ends, the gradients are undefined, the Reducer's group has
// failed, and all ranks make a new Reducer or end. An exception is a mistake in a call of Ready, or
// a nil ctx: only this rank's Wait fails, at the end of the step, and the group lives on.
//
// After the end of the Reducer or of its group the error is ccl.ErrClosed, within NoSync as well.
func (r *Reducer) Wait(ctx context.Context) error {
	if err := r.retain("Wait"); err != nil {
		r.abandonStep()
		return err
	}
	defer r.comm.Release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noSync.isOn {
		return nil
	}

	r.begin()
	r.mark(waiting)
	if ctx == nil { // the calls of the step are under way
		r.step.mistake = errors.Join(r.step.mistake, noContext("ddp.Wait"))
		ctx = context.Background()
	}
	return r.completeStep(ctx)
}

// completeStep waits for the step and ends it, also if the hook panics, and returns the error of
// Wait.
func (r *Reducer) completeStep(ctx context.Context) (err error) {
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

// stop fails the step on all ranks, unless they know, and waits until no call uses the Reducer's
// memory. They do not know if ctx has ended before they have come to the step.
func (r *Reducer) stop(ctx context.Context, err error) {
	if _, rejected := errors.AsType[*UnreadyError](err); !rejected || ctx.Err() != nil {
		r.comm.Abort(err)
	}
	r.awaitAll()
}

// finish completes the step, up to its last call.
func (r *Reducer) finish(ctx context.Context) error {
	waited := time.Now()
	if err := r.completeRest(ctx); err != nil {
		return err
	}
	trains, root, err := r.awaitCount(ctx)
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
	if err := r.rearrange(ctx, root); err != nil {
		return inCall(err)
	}

	if err := r.foldBuffers(ctx); err != nil {
		return inCall(err)
	}
	if r.opts.BroadcastBuffers {
		if err := r.shareBuffers(ctx, root); err != nil {
			return inCall(err)
		}
	}
	if r.verifiesStep() {
		return r.verify(ctx)
	}
	return nil
}

// completeRest completes what this rank has not called Ready for, or fails all ranks' remaining
// buckets.
func (r *Reducer) completeRest(ctx context.Context) error {
	r.putAccumulated()
	if err := r.checkShards(); err != nil {
		r.rejectRest(ctx, err)
		return err
	}

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

	err := r.unreadyParameters()
	if err == nil {
		return errNoWork
	}
	r.rejectRest(ctx, err)
	return err
}

// unreadyParameters returns an *UnreadyError of the parameters that are not ready, nil if all are.
func (r *Reducer) unreadyParameters() error {
	e := &UnreadyError{Rank: r.comm.Rank(), Static: r.opts.StaticGraph}
	if r.logical.tree != nil {
		e.IsSharded, e.Shard = true, r.logical.current
	}

	for i, ready := range r.step.ready {
		if !ready {
			e.Parameters = append(e.Parameters, r.params[i].name)
		}
	}
	if len(e.Parameters) == 0 {
		return nil
	}
	return e
}

// rejectRest makes calls in place of the buckets that have not started, which fail on all ranks.
func (r *Reducer) rejectRest(ctx context.Context, err error) {
	for range r.buckets[r.step.next:] {
		_ = r.comm.Reject(ctx, err)
	}
}

// finishBuckets waits for the buckets in their order, and makes their results means over the ranks
// that train.
func (r *Reducer) finishBuckets(ctx context.Context, trains int) error {
	for i, b := range r.buckets {
		if err := r.await(ctx, b.work); err != nil {
			return r.bucketError(i, err)
		}
		if err := b.finish(ctx); err != nil {
			return r.bucketError(i, err)
		}
		if r.sumsGradients() {
			b.divide(trains)
		}
	}
	return nil
}

// awaitHooks waits until Finish has succeeded on all ranks. A rank on which it has failed aborts
// the group in place of this call, which may be the last of the step: without it the others would
// not know before the next step.
func (r *Reducer) awaitHooks(ctx context.Context) error {
	if exchanges := r.logical.tree != nil && !r.logical.tree.isFlat; !exchanges && !r.opts.Hooks.isSet() {
		return nil
	}
	if err := r.comm.Barrier(ctx, ccl.WithLabel("hooks"), ccl.WithKey("ddp hooks")); err != nil {
		return inCall(err)
	}
	return nil
}

// copyBack copies means to the program's gradients, except where no rank has used the parameter.
func (r *Reducer) copyBack() {
	for i, p := range r.params {
		if r.isUsed(i) {
			p.gradient.copyBack()
		}
	}
}
