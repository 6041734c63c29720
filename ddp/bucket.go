package ddp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
)

// Bucket is a group of gradients of one type that are reduced by one call.
type Bucket[T Float] struct {
	Index      int               // 0 is reduced first
	Parameters []int             // their numbers, in the order of the gradients
	Shapes     [][]int           // of the parameters
	Gradients  []T               // the gradients of all of them, then Finish's result
	Comm       *ccl.Communicator // the group of the Reducer
	Op         ccl.Op            // Avg; Sum where Join divides after Finish
	State      any               // the hook's own
	Context    context.Context   // of Wait, in Finish
}

// bucket is a Bucket of any type, and how far it is in the step.
type bucket struct {
	parameters []int
	count      int // of its elements
	pending    int // parameters that are not ready
	work       *ccl.Work
	sharing    *ccl.Work // while Step gives all ranks the parameters
	isSpent    bool      // Step has done so since the last Wait
	reduction
}

// reduction is what a bucket does with gradients of its type.
type reduction interface {
	// add lets the hook add the gradients of a logical shard.
	add(shard int)
	// start lets the hook start the reduction by an operation.
	start(op ccl.Op) *ccl.Work
	// finish lets the hook finish it.
	finish(ctx context.Context) error
	// divide makes sums the means over ranks.
	divide(ranks int)
	// share starts to give all ranks the parts of the bucket's parameters that each has updated.
	share(all []parameter) *ccl.Work
	// adopt ends what share has started, after its Work.
	adopt(all []parameter)
}

// reductionOf is a Bucket and its hook.
type reductionOf[T Float] struct {
	Bucket[T]
	hook    Hook[T]
	memory  []T // of its gradients
	sharing blocksCall
}

func (r *reductionOf[T]) add(shard int) { r.hook.(adder[T]).add(&r.Bucket, shard) }

func (r *reductionOf[T]) start(op ccl.Op) *ccl.Work {
	r.Op = op
	return r.hook.Start(&r.Bucket)
}

func (r *reductionOf[T]) finish(ctx context.Context) error {
	r.Context = ctx
	if err := r.hook.Finish(&r.Bucket); err != nil {
		return err
	}
	if have, want := len(r.Gradients), len(r.memory); have != want {
		return fmt.Errorf("the hook has left %d gradients of %d", have, want)
	}
	copy(r.memory, r.Gradients) // a hook may have made another slice
	r.Gradients = r.memory
	return nil
}

func (r *reductionOf[T]) divide(ranks int) {
	switch gradients := any(r.Gradients).(type) {
	case []float64:
		// The product with an inverse can have another last bit than the mean outside Join.
		for i := range gradients {
			gradients[i] /= float64(ranks)
		}
		return
	case []half.Float16:
		if calls, ok := r.State.(*meanCalls); ok {
			for i, sum := range calls.sums {
				gradients[i] = half.NewFloat16(sum / float32(ranks))
			}
			return
		}
	}

	scale(r.Gradients, 1/float64(ranks), 1)
}

// pool is the memory of the buckets of one type.
type pool interface {
	// allocate makes room for a number of elements.
	allocate(ctx context.Context, c *ccl.Communicator, count int, logger *slog.Logger) error
	// reset makes all memory free.
	reset()
	// newReduction makes the bucket of parameters of this type, and lets their gradients lie there.
	newReduction(c *ccl.Communicator, index int, parameters []int, all []parameter) reduction
}

// poolOf is the pool of a type.
type poolOf[T Float] struct {
	hook         Hook[T]
	memory, free []T
}

func (p *poolOf[T]) allocate(ctx context.Context, c *ccl.Communicator, count int, logger *slog.Logger) (err error) {
	p.memory, err = ccl.Alloc[T](ctx, c, count)
	if refused, ok := errors.AsType[*dist.AllocationFailedError](err); ok {
		if logger != nil {
			logger.Warn("buckets are copied, since memory that ranks share was refused", "bytes", count*ccl.DTypeOf[T]().Size(), "error", refused)
		}
		p.memory, err = make([]T, count), nil
	}
	return err
}

func (p *poolOf[T]) reset() { p.free = p.memory }

func (p *poolOf[T]) newReduction(c *ccl.Communicator, index int, parameters []int, all []parameter) reduction {
	made := &reductionOf[T]{Bucket: Bucket[T]{Index: index, Parameters: slices.Clone(parameters), Comm: c}, hook: p.hook}
	if g := all[parameters[0]].gradient.(*gradientOf[T]); g.isInPlace {
		made.memory, made.Gradients, g.slot = g.program, g.program, g.program
		return made
	}

	n := 0
	for _, i := range parameters {
		n += all[i].elements.count()
	}
	n = max(n, 1) // a collective has an element at least, and all parameters of a bucket may be empty
	made.memory, p.free = p.free[:n:n], p.free[alignCount(n, ccl.DTypeOf[T]()):]
	made.Gradients = made.memory
	low := 0
	for _, i := range parameters {
		made.Shapes = append(made.Shapes, slices.Clone(all[i].shape))
		high := low + all[i].elements.count()
		all[i].gradient.(*gradientOf[T]).slot = made.memory[low:high:high]
		low = high
	}
	return made
}

// alignCount rounds a number of elements up to whole pairs of cache lines.
func alignCount(n int, d ccl.DType) int {
	unit := 128 / d.Size()
	return (n + unit - 1) / unit * unit
}
