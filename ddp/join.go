package ddp

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// join is the state of Join.
type join struct {
	isOn   bool
	trains []uint8 // by rank: 1 if it trains in this step
	last   []uint8 // the same of the step before
}

// Join runs training that may have a different number of steps on each rank (torch's Join). train makes this
// rank's steps. After it has returned, this rank takes part in the steps of the others without gradients
// until all ranks are done. The mean of a step is over the ranks that train in it. When all are done, all
// ranks get the parameters and buffers of the lowest of those that trained longest.
//
// All ranks call Join. If train fails, Join returns its error, and the other ranks fail as well: they get
// *ccl.AbortedError with its text. The ranks that are done make the steps of the Reducer, Ready and Wait, and
// nothing else: other calls that need all ranks wait for them in vain, and Save and Load are refused.
//
// After the end of the Reducer or of its group the error is ccl.ErrClosed, and train is not called.
func (r *Reducer[T]) Join(ctx context.Context, train func() error) error {
	if err := r.retain("Join"); err != nil {
		return err
	}
	defer r.comm.Release()
	r.setJoining(true)
	defer r.setJoining(false)
	if err := train(); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.comm.Abort(err)
		r.settle()
		r.mark(failed)
		return err
	}
	for {
		more, err := r.shadow(ctx)
		if err != nil {
			return err
		}
		if !more {
			return r.shareLast(ctx)
		}
	}
}

func (r *Reducer[T]) setJoining(joining bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.join.isOn = joining
	if joining {
		r.join.last = make([]uint8, r.comm.Size())
	}
	for _, b := range r.buckets {
		r.setOp(b)
	}
}

// setOp sets the operation of a bucket.
func (r *Reducer[T]) setOp(b *Bucket[T]) {
	if b.Op = ccl.Avg; r.join.isOn {
		b.Op = ccl.Sum
	}
}

// divide makes the sums of a bucket the means over the ranks that train.
func (b *Bucket[T]) divide(trains int) {
	if doubles, ok := any(b.Gradients).([]float64); ok {
		for i := range doubles { // the product with an inverse can have another last bit than the mean outside Join
			doubles[i] /= float64(trains)
		}
		return
	}
	halves, ok := any(b.Gradients).([]half.Float16)
	if !ok || b.sums == nil {
		scale(b.Gradients, 1/float64(trains))
		return
	}
	for i, sum := range b.sums {
		halves[i] = half.NewFloat16(sum / float32(trains))
	}
}

// countRanks starts to count the ranks that train in this step. training is 1 if this rank does.
func (r *Reducer[T]) countRanks(training uint8) {
	r.step.census = ccl.AllGatherAsync(context.Background(), r.comm, []uint8{training}, r.join.trains, ccl.WithLabel("join"))
}

// awaitCensus returns how many ranks train in this step, and one of them.
func (r *Reducer[T]) awaitCensus(ctx context.Context) (trains, root int, err error) {
	if r.step.census == nil {
		return r.comm.Size(), 0, nil
	}
	if err := r.step.census.Wait(ctx); err != nil {
		return 0, 0, fmt.Errorf("ddp: %w", err)
	}
	for _, t := range r.join.trains {
		trains += int(t)
	}
	copy(r.join.last, r.join.trains)
	return trains, slices.Index(r.join.trains, 1), nil
}

// shadow takes part in a step of the other ranks, if some rank still trains.
func (r *Reducer[T]) shadow(ctx context.Context) (more bool, err error) {
	r.mu.Lock()
	r.step.hasBegun = true
	r.mark(outOfData)
	clear(r.unused.used)
	r.countRanks(0)
	if err = r.step.census.Wait(ctx); err != nil {
		err = fmt.Errorf("ddp: %w", err)
	}
	for _, active := range r.join.trains {
		more = more || active != 0
	}
	if err != nil || !more {
		r.step.hasBegun, r.step.census = false, nil
		if r.mark(computing); err != nil {
			r.mark(failed)
		}
		r.mu.Unlock()
		return false, err
	}
	for i := range r.params {
		r.putZeros(i)
	}
	r.mu.Unlock()
	return true, r.Wait(ctx)
}

// shareLast gives all ranks the parameters and buffers of the lowest rank that trained in the last step.
func (r *Reducer[T]) shareLast(ctx context.Context) error {
	for root, trained := range r.join.last {
		if trained == 0 {
			continue
		}
		for _, p := range r.params {
			if err := ccl.Broadcast(ctx, r.comm, p.Data, root); err != nil {
				return fmt.Errorf("ddp: %w", err)
			}
		}
		if err := r.shareBuffers(ctx, root); err != nil {
			return fmt.Errorf("ddp: %w", err)
		}
		return nil
	}
	return nil // no rank made a step
}
