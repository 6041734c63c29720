package ddp

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// join is the state of Join.
type join struct {
	isOn   bool
	opts   JoinOptions
	early  *EarlyTerminationError // that Wait has returned
	trains []uint8                // by rank: 1 if it trains in this step
	last   []uint8                // the same of the step before
}

// Join runs training that may have a different number of steps on each rank (torch's Join, whose
// options JoinWith has).
//
// train makes this rank's steps. After it has returned, this rank takes part in the steps of the
// others without gradients until all ranks are done. The mean of a step is over the ranks that
// train in it. When all are done, all ranks get the parameters, the buffers and the optimizer's
// state (NewOptimizerState) of the lowest of those that trained longest. What else a step changes,
// such as a count of steps, is a buffer (Options.Buffers), or differs between ranks from then on.
//
// All ranks call Join. If it fails on one, because train fails, or ctx ends, it fails on the others
// as well: they get *dist.AbortedError with its text. The ranks that are done make the steps
// of the Reducer, Ready and Wait, and nothing else: other calls that need all ranks wait for them
// in vain, and Save and Load are refused.
//
// *ccl.InvalidArgumentError is the error of a train that returns between Ready and Wait, or leaves
// gradients that NoSync has accumulated without a step. It also rejects a nil ctx, and Join within
// Join, within NoSync, in a step that has begun, and with Options.Shard; then train is not called.
// After the end of the Reducer or of its group the error is ccl.ErrClosed, and train is not called.
func (r *Reducer) Join(ctx context.Context, train func() error) error {
	return r.JoinWith(ctx, JoinOptions{}, train)
}

// JoinOptions are the choices of JoinWith; the zero value has those of Join. They have the names
// that torch gives them, and are the same on all ranks.
type JoinOptions struct {
	// DivideByInitialWorldSize makes the mean of a step one over all ranks (torch's default): those
	// that are done count as zeros.
	DivideByInitialWorldSize bool

	// ThrowOnEarlyTermination ends the training of all ranks with the first one's. In the step in
	// which that trains no more, Wait on those that do, and JoinWith on all, return
	// *EarlyTerminationError. Parameters stay as they are, and the Reducer can be used as before.
	ThrowOnEarlyTermination bool

	// Disable calls train and does nothing else, for ranks of which all have equally many steps
	// (enable=False of torch).
	Disable bool
}

// EarlyTerminationError says that ranks are done before others, and that JoinWith ends there.
type EarlyTerminationError struct {
	Ranks []int // those that are done, in the Reducer's group
}

func (e *EarlyTerminationError) Error() string {
	return fmt.Sprintf("ddp: the ranks %d are done before others, and ThrowOnEarlyTermination ends Join there", e.Ranks)
}

// JoinWith is Join with choices.
func (r *Reducer) JoinWith(ctx context.Context, opts JoinOptions, train func() error) error {
	if err := r.retain("Join"); err != nil {
		return err
	}
	defer r.comm.Release()
	if opts.Disable {
		return train()
	}
	if ctx == nil {
		return r.comm.Reject(context.Background(), noContext("ddp.Join"))
	}

	if err := r.beginJoin(opts); err != nil {
		return r.comm.Reject(ctx, err)
	}

	if err := r.endSaving(ctx); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.join.isOn = false
		return err
	}

	err := errTrainPanicked
	defer func() { r.endJoin(err) }()
	if err = train(); err == nil {
		err = r.checkTrained()
	}
	for more := true; more && err == nil; {
		more, err = r.follow(ctx)
	}
	if err == nil {
		err = r.shareLast(ctx)
	}
	return err
}

// errTrainPanicked is what the other ranks get if train does not return.
var errTrainPanicked = errors.New("ddp: train has not returned to Join: it has panicked, or ended its goroutine")

// beginJoin begins Join, unless another method that has not ended is in its way.
func (r *Reducer) beginJoin(opts JoinOptions) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.join.isOn:
		return invalid("ddp.Join", "Join within Join: a rank joins once")
	case r.opts.Shard:
		return invalid("ddp.Join", "Join with Options.Shard: a rank that is done would not update its parts")
	case r.noSync.isOn:
		return invalid("ddp.Join", "Join within NoSync: its steps would not be reduced")
	}

	if err := r.errLogical("Join", "all ranks have equally many steps"); err != nil {
		return err
	}
	if err := r.checkBetweenSteps("Join"); err != nil {
		return err
	}
	r.join = join{isOn: true, opts: opts, trains: r.join.trains, last: make([]uint8, r.comm.Size())}
	return nil
}

// endJoin ends Join. If it has failed, so do the other ranks, which wait for this one, unless all
// have returned from the same step.
func (r *Reducer) endJoin(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.join.early == nil {
			r.comm.Abort(err)
		}
		r.awaitAll()
		r.endStep()
		r.mark(failed)
	}
	r.join.isOn = false
}

// checkTrained returns an error if train has returned, and has begun what only its next Wait would
// end.
func (r *Reducer) checkTrained() error {
	if err := r.retain("Join"); err != nil { // train has ended the Reducer
		return err
	}
	r.comm.Release()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.join.early != nil: // train has not returned it
		return r.join.early
	case r.step.mistake != nil:
		return r.step.mistake
	case r.step.hasBegun || slices.Contains(r.noSync.accumulated, true):
		return invalid("ddp.Join", "train returned in a step that has begun: call Wait after the last Ready, outside NoSync")
	}
	return nil
}

// countRanks starts to count the ranks that train in this step. training is 1 if this rank does.
func (r *Reducer) countRanks(training uint8) {
	r.step.counting = new(ccl.Work) // has the error as well
	_ = ccl.AllGather(context.Background(), r.comm, []uint8{training}, r.join.trains,
		ccl.WithLabel("join"), ccl.WithKey(r.join.opts.key()), ccl.WithWork(r.step.counting))
}

// key returns what all ranks must have in common.
func (o *JoinOptions) key() string {
	switch {
	case o.DivideByInitialWorldSize && o.ThrowOnEarlyTermination:
		return "ddp join, DivideByInitialWorldSize, ThrowOnEarlyTermination"
	case o.DivideByInitialWorldSize:
		return "ddp join, DivideByInitialWorldSize"
	case o.ThrowOnEarlyTermination:
		return "ddp join, ThrowOnEarlyTermination"
	}
	return "ddp join"
}

// sumsGradients reports whether buckets are summed, and divided by the number of ranks that train.
func (r *Reducer) sumsGradients() bool { return r.join.isOn && !r.join.opts.DivideByInitialWorldSize }

// awaitCount returns how many ranks train in this step, and one of them.
func (r *Reducer) awaitCount(ctx context.Context) (trains, root int, err error) {
	if r.step.counting == nil {
		return r.comm.Size(), 0, nil
	}
	if err := r.await(ctx, r.step.counting); err != nil {
		return 0, 0, inCall(err)
	}
	for _, t := range r.join.trains {
		trains += int(t)
	}
	copy(r.join.last, r.join.trains)

	if r.join.opts.ThrowOnEarlyTermination && trains < r.comm.Size() {
		r.terminate()
	}
	return trains, slices.Index(r.join.trains, 1), nil
}

// terminate makes Wait end Join. All ranks complete the step first, so that their group lives on.
func (r *Reducer) terminate() {
	e := &EarlyTerminationError{}
	for rank, t := range r.join.trains {
		if t == 0 {
			e.Ranks = append(e.Ranks, rank)
		}
	}
	r.join.early = e
	r.step.noteMistake(e)
}

// follow takes part in a step of the other ranks, if some rank still trains.
func (r *Reducer) follow(ctx context.Context) (more bool, err error) {
	if more, err = r.beginFollowing(ctx); more {
		err = r.Wait(ctx)
	}
	return more, err
}

// beginFollowing begins a step without gradients of this rank, unless no rank trains.
func (r *Reducer) beginFollowing(ctx context.Context) (more bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step.hasBegun = true
	r.mark(outOfData)
	clear(r.unused.used)
	r.countRanks(0)
	if err := r.await(ctx, r.step.counting); err != nil {
		return false, inCall(err)
	}

	if !slices.Contains(r.join.trains, 1) {
		r.endStep()
		r.mark(computing)
		return false, nil
	}
	for i := range r.params {
		r.putZeros(i)
	}
	return true, nil
}

// shareLast gives all ranks the parameters and buffers of the lowest rank that trained in the last
// step.
func (r *Reducer) shareLast(ctx context.Context) error {
	root := slices.Index(r.join.last, 1)
	if root < 0 { // no rank made a step
		return nil
	}
	if err := r.shareState(ctx, root); err != nil {
		return inCall(err)
	}
	return nil
}
