package ddp

import (
	"context"
	"errors"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/interleave"
)

// Reducer averages the gradients of a model over ranks.
type Reducer struct {
	group   *dist.ProcessGroup // a copy of New's, for the calls of the Reducer alone
	comm    *ccl.Communicator  // of group
	opts    Options
	isDebug bool // on a rank

	arrangement

	mu      interleave.Mutex
	closed  bool
	saving  *SaveWork // nil: none was begun, or its error is known
	params  []parameter
	states  []Tensor // of the optimizer
	outer   *Outer   // the last one that was made
	step    step
	noSync  noSync
	logical logical
	unused  unused
	join    join
	stats   Stats
	number  int // of the step, from 1
}

// parameter is a parameter in a Reducer.
type parameter struct {
	Tensor
	gradient  gradient
	isInPlace bool // its gradient is a bucket
	bucket    int
	offset    int // of its gradient in the bucket, in elements
}

// New makes a Reducer of the ranks of a group; that of all ranks is dist.Default. It is collective:
// all ranks pass the same parameters, in the same order, and the same options. The parameters and
// buffers get the values of rank 0. The slices belong to the Reducer as well until Close.
//
// Parameters, gradients and buffers have memory of their own: those that overlap any other, of this
// rank or of another rank that is a goroutine of this process, are refused.
//
// A Reducer ends with Close, or with the default group of its rank. From then on Ready does
// nothing, Grad returns nil, Stats and Close work, and all other methods return ccl.ErrClosed and
// do nothing.
//
// Wrong arguments of any rank are *ccl.InvalidArgumentError on all; what differs between ranks is
// *ccl.MismatchError on all, whose field names the first parameter that differs. A nil group, which
// dist.NewGroup returns to ranks that are no members, is *ccl.InvalidArgumentError.
func New(ctx context.Context, group *dist.ProcessGroup, params []Parameter, opts Options) (*Reducer, error) {
	opts.setDefaults()
	opts.Buffers = slices.Clone(opts.Buffers)
	views, isDebug, err := compareArguments(ctx, group, params, &opts)
	if err != nil {
		return nil, err
	}
	copied, err := dist.NewGroup(nil, dist.WithGroup(group), dist.WithContext(ctx), dist.WithKey("ddp.New"), dist.WithLabel(opts.Name))
	if err != nil {
		return nil, inCall(err)
	}

	r := &Reducer{group: copied, comm: copied.Communicator(), opts: opts, isDebug: isDebug, number: 1}
	if opts.LogicalShards > 0 {
		r.logical.tree = newShardTree(opts.LogicalShards, r.comm.Rank(), r.comm.Size())
		r.logical.reset()
	}
	for _, p := range params {
		isInPlace := opts.reducesInPlace(p.gradient)
		made := p.newGradient(isInPlace)
		r.params = append(r.params, parameter{Tensor: p.tensor, gradient: made, isInPlace: isInPlace})
	}
	r.isFinal = views || opts.Shard // parts that ranks update do not move
	r.logical.buffers = r.newShardBuffers()
	if err := r.prepare(ctx); err != nil {
		return nil, errors.Join(inCall(err), r.Close())
	}
	r.mark(computing)
	return r, nil
}

// What ranks do in a step, in the flight recorder.
const (
	computing = "compute"     // until a gradient is ready: the optimizer, the next batch, forward
	backward  = "backward"    // while buckets are reduced
	waiting   = "wait"        // for the buckets
	outOfData = "out of data" // in Join, after this rank's last batch
	failed    = "failed"
)

// mark notes what this rank does from now on in the step.
func (r *Reducer) mark(what string) { r.comm.Mark(what, r.number) }

// prepare makes the buckets and gives all ranks the values of rank 0.
func (r *Reducer) prepare(ctx context.Context) error {
	if err := r.allocate(ctx); err != nil {
		return err
	}
	n := len(r.params)
	r.step = newStep(n)
	r.noSync.accumulated = make([]bool, n)
	r.join.trains = make([]uint8, r.comm.Size())
	r.unused = newUnused(n)
	r.arrange(reversed(n))
	return r.shareState(ctx, 0)
}

// shareState gives all ranks the parameters, the state of the optimizer and the buffers of one.
func (r *Reducer) shareState(ctx context.Context, root int) error {
	for _, p := range r.params {
		if err := p.elements.broadcast(ctx, r.comm, root); err != nil {
			return err
		}
	}
	for _, s := range r.states {
		if err := s.elements.broadcast(ctx, r.comm, root, ccl.WithKey("ddp state "+s.name)); err != nil {
			return err
		}
	}
	r.renewOuter()
	return r.shareBuffers(ctx, root)
}

// shareBuffers gives all ranks the buffers of one.
func (r *Reducer) shareBuffers(ctx context.Context, root int) error {
	for _, b := range r.opts.Buffers {
		if err := b.elements.broadcast(ctx, r.comm, root); err != nil {
			return err
		}
	}
	return nil
}

// Grad returns the gradient of a parameter, by its number: that of Param, or the part of a bucket
// that New made for it, or the slice that ReadyGrad got last.
//
// It stays where it is until the next ReadyGrad or Close, or until the Reducer's group ends. From
// then on Grad returns nil.
//
// T is the parameter's type. For another type, and for a number that no parameter has, Grad panics
// with a *ccl.InvalidArgumentError.
func Grad[T Float](r *Reducer, parameter int) []T {
	if !r.comm.Retain() {
		return nil
	}
	defer r.comm.Release()
	g, err := gradientIn[T](r, "Grad", parameter)
	if err != nil {
		panic(err)
	}
	return g.current()
}

// gradientIn returns the gradient of a parameter, or why there is none of this type.
func gradientIn[T Float](r *Reducer, operation string, parameter int) (*gradientOf[T], error) {
	if parameter < 0 || parameter >= len(r.params) {
		return nil, r.noParameter(operation, parameter, "is asked for")
	}
	p := &r.params[parameter]
	g, ok := p.gradient.(*gradientOf[T])
	if !ok {
		return nil, invalid("ddp."+operation, "parameter %q is of %v, and the gradient of %v", p.name, p.elements.dtype(), ccl.DTypeOf[T]())
	}
	return g, nil
}
