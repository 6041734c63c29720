package ddp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// retain begins a method that needs the Reducer: until r.comm.Release its buckets stay in memory,
// also if the group ends meanwhile. Its error is that of the method after the end of the Reducer or
// of its group.
func (r *Reducer) retain(operation string) error {
	if r.comm.Retain() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fmt.Errorf("ddp: %s: the Reducer is %w", operation, ccl.ErrClosed)
	}
	return fmt.Errorf("ddp: %s: the group of the Reducer is %w, "+
		"since a Reducer ends with the default group, or with its rank: make another", operation, ccl.ErrClosed)
}

// checkBetweenSteps returns an error of a method that is called between steps, if a step has begun.
// The caller holds mu.
func (r *Reducer) checkBetweenSteps(operation string) error {
	if !r.step.hasBegun {
		return nil
	}
	by := "Ready"
	if r.logical.tree != nil {
		by = "Shards"
	}
	return invalid("ddp."+operation, "a step has begun by %s: call Wait first", by)
}

// checkReduced returns an error of a method that uses the means of the last step, if there are
// none. The caller holds mu.
func (r *Reducer) checkReduced(operation string) error {
	if err := r.checkBetweenSteps(operation); err != nil {
		return err
	}
	if r.noSync.isOn || slices.Contains(r.noSync.accumulated, true) {
		return invalid("ddp."+operation, "gradients that NoSync has accumulated are those of this rank alone: call Wait outside NoSync first")
	}
	return nil
}

// beginCheckpoint is retain for checkpoints and Verify. They are refused in a step, and within
// Join, where ranks that are done make steps only.
func (r *Reducer) beginCheckpoint(operation string) error {
	if err := r.retain(operation); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.checkBetweenSteps(operation)
	if r.join.isOn {
		err = invalid("ddp."+operation, "it is called within Join, where ranks that are done make steps only: call it before or after, with all ranks")
	}

	if err != nil {
		r.comm.Release()
	}
	return err
}

// abandonStep forgets a step whose group has ended, when no call uses its gradients any more.
func (r *Reducer) abandonStep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaitAll()
	r.endStep()
}

// Close ends this rank's use of the Reducer. Gradients that New made must not be used any more. A
// step that has begun, and for which Wait has not been called, fails on all ranks: when Close
// returns, nothing writes to gradients.
//
// Rank 0 waits for a checkpoint of SaveAsync, whose error it returns if no call has.
//
// Its errors are those of dist.DestroyProcessGroup for the Reducer's group: dist.ErrNotInitialized
// if that was destroyed with the default group before, *dist.UnfinishedError if calls of a Hook
// have not ended. Closing twice is a no-op.
func (r *Reducer) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}

	r.closed = true
	if r.step.hasBegun {
		r.comm.Abort(errors.New("ddp: the Reducer was closed within a step"))
		r.awaitAll()
		r.endStep()
	}
	r.mu.Unlock()
	err := dist.DestroyProcessGroup(dist.WithGroup(r.group))
	if failed := r.abandonSaving(); failed != nil {
		return errors.Join(failed, err)
	}
	return err
}
