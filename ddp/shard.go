package ddp

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl"
)

// Part is what this rank updates of a parameter: all of it, unless Options.Shard is set.
type Part[T Float] struct {
	Parameter int // its number
	First     int // the element of the parameter with which Values begins
	Values    []T // elements of the parameter
	Gradient  []T // those of its gradient: the mean, after Wait
}

// Parts returns what this rank updates of the parameters of a type, in their order, without parts
// that have no elements.
//
// Parts of a parameter are the same in all steps, and do not overlap. Gradient is part of what Grad
// returns, and is valid as long. After the end of the Reducer or of its group there are none.
func Parts[T Float](r *Reducer) (parts []Part[T]) {
	if !r.comm.Retain() {
		return nil
	}
	defer r.comm.Release()
	for i := range r.params {
		if p, ok := partIn[T](r, i); ok {
			parts = append(parts, p)
		}
	}
	return parts
}

// partIn returns this rank's part of a parameter, if that has this type and the part has elements.
func partIn[T Float](r *Reducer, parameter int) (p Part[T], ok bool) {
	values, _ := r.params[parameter].elements.(vector[T])
	g, ok := r.params[parameter].gradient.(*gradientOf[T])
	if !ok || g.low == g.high {
		return p, false
	}
	return Part[T]{parameter, g.low, values[g.low:g.high:g.high], g.part()}, true
}

// Step is a step of the optimizer, after Wait: it calls update for this rank's part of each
// parameter of a type, and with Options.Shard gives all ranks the parts of all.
//
//	err := ddp.Step(ctx, model, func(p ddp.Part[float32]) {
//		for i, g := range p.Gradient {
//			p.Values[i] -= rate * g
//		}
//	})
//
// All ranks call it, once for each type that parameters have. update changes p.Values, and state of
// the program that it finds by p.Parameter: see NewOptimizerState. It does not call the Reducer.
//
// With Shard a rank does 1/R of the work: its parts have as many elements as all parameters divided
// by the number of ranks, and at most one more for each bucket. Gradients are undefined after Step,
// so that a loop that adds to them clears them first. All parameters have the bits that they have
// without Shard if these hold:
//   - update computes an element from itself, its gradient and its state, as SGD and Adam do, and
//     not from the rest of the parameter, as LAMB does
//   - the algorithms of all-reduce and reduce-scatter add up in the same order, as those of direct
//     and tree do, and those of ring do not
//   - ClipGradNorm is not used, whose norm may have another last bit
//
// If Step fails, also because ctx ends or update panics, the parameters of the type are undefined,
// and with Shard the Reducer's group has failed. After the end of the Reducer or of its group the
// error is ccl.ErrClosed. It is *ccl.InvalidArgumentError of this rank, and update is not called:
//   - in a step that has begun
//   - within NoSync, and until the step that reduces what it has accumulated
//   - with Shard, for the second time after a Wait, since Step has used the memory of the means
//   - if no parameter has the type, or ctx is nil
func Step[T Float](ctx context.Context, r *Reducer, update func(Part[T])) error {
	if err := r.beginUpdate("Step"); err != nil {
		return err
	}
	defer r.comm.Release()

	if ctx == nil {
		return noContext("ddp.Step")
	}

	isNone := true
	for _, p := range r.params {
		if _, ok := p.elements.(vector[T]); !ok {
			continue
		}
		isNone = false
		if r.buckets[p.bucket].isSpent {
			return errSpent("Step")
		}
	}

	if isNone {
		return invalid("ddp.Step", "no parameter is of %v", ccl.DTypeOf[T]())
	}

	return r.updateParts(ctx, func(parameter int) (isChosen bool) {
		if p, ok := partIn[T](r, parameter); ok {
			update(p)
		}
		_, isChosen = r.params[parameter].elements.(vector[T])
		return isChosen
	})
}

// beginUpdate is retain for methods that update parameters by the means of a step.
func (r *Reducer) beginUpdate(operation string) error {
	if err := r.retain(operation); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.checkReduced(operation)
	if err != nil {
		r.comm.Release()
	}
	return err
}

// errNotUpdated is what the other ranks get if update does not return.
var errNotUpdated = errors.New("ddp: update has not returned to Step: it has panicked, or ended its goroutine")

// updateParts calls update for all parameters, bucket by bucket. With Shard it gives all ranks the
// parts of the buckets that are chosen, while it updates the next ones. All parameters of a bucket
// are chosen, or none.
func (r *Reducer) updateParts(ctx context.Context, update func(parameter int) (isChosen bool)) (err error) {
	err = errNotUpdated
	defer func() {
		if err != nil && r.opts.Shard {
			r.abandonParts(err)
		}
	}()

	for i := range r.buckets {
		b := &r.buckets[i]
		isChosen := false
		for _, parameter := range b.parameters {
			isChosen = update(parameter)
		}
		if isChosen && r.opts.Shard {
			b.sharing, b.isSpent = b.share(r.params), true
		}
	}
	return r.adoptParts(ctx)
}

// adoptParts waits for the parts of all ranks.
func (r *Reducer) adoptParts(ctx context.Context) error {
	for i := range r.buckets {
		b := &r.buckets[i]
		if b.sharing == nil {
			continue
		}
		if err := r.await(ctx, b.sharing); err != nil {
			return r.bucketError(i, err)
		}
		b.adopt(r.params)
		b.sharing = nil
	}
	return nil
}

// abandonParts fails the group, and waits until no call uses the memory of parts.
func (r *Reducer) abandonParts(err error) {
	r.comm.Abort(err)
	for i := range r.buckets {
		b := &r.buckets[i]
		if b.sharing != nil {
			_ = b.sharing.Wait(context.Background()) // it ends at once
			b.sharing = nil
		}
	}
}

// errSpent returns the error of a method that needs means of a step that Step has used up.
func errSpent(operation string) error {
	return invalid("ddp."+operation, "Step was called since the last Wait, and with Options.Shard the means are gone then: "+
		"clip before Step, and call Step once for each type")
}

// partOf returns which elements of a parameter a rank updates: with Shard those that lie in the
// rank's block of the bucket, otherwise all.
func (r *Reducer) partOf(parameter, rank int) (low, high int) {
	p := &r.params[parameter]
	count := p.elements.count()
	if !r.opts.Shard {
		return 0, count
	}
	low, high = ccl.BlockRange(r.buckets[p.bucket].count, rank, r.comm.Size())
	return min(max(low-p.offset, 0), count), min(max(high-p.offset, 0), count)
}

// blocksCall is a call of a bucket in which each rank has a block of it.
type blocksCall struct {
	asyncCall
	counts    []int // by rank
	low, high int   // of this rank's block
}

// prepare sets the blocks of n elements.
func (s *blocksCall) prepare(c *ccl.Communicator, n int) {
	if s.counts != nil {
		return
	}
	s.low, s.high = ccl.BlockRange(n, c.Rank(), c.Size())
	for rank := range c.Size() {
		low, high := ccl.BlockRange(n, rank, c.Size())
		s.counts = append(s.counts, high-low)
	}
}

// scatter is the hook of a type without one, with Shard. It gives each rank the mean of its block.
type scatter[T Float] struct{}

func (scatter[T]) Start(b *Bucket[T]) *ccl.Work {
	call, ok := b.State.(*blocksCall)
	if !ok {
		call = new(blocksCall)
		call.prepare(b.Comm, len(b.Gradients))
		b.State = call
	}
	_ = ccl.ReduceScatterV(context.Background(), b.Comm, b.Gradients, b.Gradients[call.low:call.high], b.Op, call.counts,
		call.options("bucket", b.Index)...) // the Work has the error as well
	return &call.work
}

func (scatter[T]) Finish(*Bucket[T]) error { return nil }

// single returns the values of the bucket's parameter, if there is one: they travel where they are.
// Those of several travel in the memory of their gradients.
func (r *reductionOf[T]) single(all []parameter) (values []T, ok bool) {
	values = all[r.Parameters[0]].elements.(vector[T])
	return values, len(r.Parameters) == 1 && len(values) > 0
}

func (r *reductionOf[T]) share(all []parameter) *ccl.Work {
	values, ok := r.single(all)
	if !ok {
		values = r.memory
		for _, i := range r.Parameters {
			p := &all[i]
			g := p.gradient.(*gradientOf[T])
			copy(values[p.offset+g.low:], p.elements.(vector[T])[g.low:g.high])
		}
	}

	r.sharing.prepare(r.Comm, len(values))
	_ = ccl.AllGatherV(context.Background(), r.Comm, values[r.sharing.low:r.sharing.high], values, r.sharing.counts, nil,
		r.sharing.options("parameters of bucket", r.Index)...) // the Work has the error as well
	return &r.sharing.work
}

func (r *reductionOf[T]) adopt(all []parameter) {
	if _, ok := r.single(all); ok {
		return
	}
	for _, i := range r.Parameters {
		copy(all[i].elements.(vector[T]), r.memory[all[i].offset:])
	}
}
