package ddp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// Reducer averages the gradients of a model over ranks.
type Reducer[T Float] struct {
	group   *dist.ProcessGroup // its own
	comm    *ccl.Communicator  // of group
	params  []Parameter[T]
	lengths []int
	opts    Options[T]
	hook    Hook[T]
	views   bool
	memory  []T
	inPlace []bool // gradients that are their own bucket
	buckets []*Bucket[T]
	places  []place
	rebuilt bool       // the buckets have their final order
	isDebug bool       // on a rank
	given   [][]T      // by parameter: the gradient that ReadyGrad got last
	owners  map[*T]int // parameters of this step, by the first element of what ReadyGrad got
	stats   Stats

	mu          sync.Mutex
	closed      bool
	number      int // of the step, from 1
	step        step
	isQuiet     bool   // in NoSync
	accumulated []bool // by parameter: ready within NoSync since the last step
	unused      unused
	join        join
}

// New makes a Reducer of the ranks of a group; that of all ranks is dist.Default. It is collective:
// all ranks pass the same parameters, in the same order, and the same options. The parameters and
// buffers get the values of rank 0. The slices belong to the Reducer as well until Close.
//
// A Reducer ends with Close, or with the default group of its rank. From then on Ready does nothing, Grad returns nil,
// Stats and Close work, and all other methods return ccl.ErrClosed and do nothing.
//
// Wrong arguments of any rank are *ccl.InvalidArgumentError on all; what differs between ranks is
// *ccl.MismatchError on all, whose field names the first parameter that differs. A nil group, which
// dist.NewGroup returns to ranks that are no members, is *ccl.InvalidArgumentError.
func New[T Float](ctx context.Context, group *dist.ProcessGroup, params []Parameter[T], opts Options[T]) (*Reducer[T], error) {
	opts.setDefaults()
	d := describe(params, &opts)
	d.Debug = group.Communicator().Debug()
	isDebug, err := agree(ctx, group, d)
	if err != nil {
		return nil, err
	}
	own, err := dist.NewGroup(nil, dist.WithGroup(group), dist.WithContext(ctx), dist.WithKey("ddp.New"))
	if err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	r := &Reducer[T]{group: own, comm: own.Communicator(), params: slices.Clone(params), opts: opts, hook: opts.Hook, views: d.Views, isDebug: isDebug, number: 1}
	if r.hook == nil {
		r.hook = mean[T]{}
	}
	if err := r.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("ddp: %w", err), r.Close())
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
func (r *Reducer[T]) mark(what string) { r.comm.Mark(what, r.number) }

// prepare makes the buckets and gives all ranks the values of rank 0.
func (r *Reducer[T]) prepare(ctx context.Context) error {
	for _, p := range r.params {
		r.lengths = append(r.lengths, len(p.Data))
		r.inPlace = append(r.inPlace, r.reducesInPlace(p))
	}
	total := max(1, room(r.params, r.inPlace))
	var err error
	var refused *ccl.AllocationFailedError
	switch r.memory, err = ccl.Alloc[T](ctx, r.comm, total); {
	case errors.As(err, &refused):
		if r.opts.Logger != nil {
			r.opts.Logger.Warn("buckets are copied, since memory that ranks share was refused", "bytes", total*ccl.DTypeOf[T]().Size(), "error", err)
		}
		r.memory = make([]T, total)
	case err != nil:
		return err
	}
	n := len(r.params)
	r.given, r.owners = make([][]T, n), map[*T]int{}
	r.step.ready, r.accumulated = make([]bool, n), make([]bool, n)
	r.join.trains = make([]uint8, r.comm.Size())
	used := make([]uint8, n)
	r.unused = unused{
		used:     used,
		exchange: ccl.AllReduceInit(r.comm, used, used, ccl.Max, ccl.WithLabel("unused parameters"), ccl.WithKey("ddp unused parameters")),
		outside:  make([]bool, n),
		nowhere:  make([]bool, n),
	}
	r.arrange(reversed(n))
	r.rebuilt = r.views
	for _, p := range r.params {
		if err := ccl.Broadcast(ctx, r.comm, p.Data, 0); err != nil {
			return err
		}
	}
	return r.shareBuffers(ctx, 0)
}

// shareBuffers gives all ranks the buffers of one.
func (r *Reducer[T]) shareBuffers(ctx context.Context, root int) error {
	for _, b := range r.opts.Buffers {
		if err := ccl.Broadcast(ctx, r.comm, b, root); err != nil {
			return err
		}
	}
	return nil
}

// Grad returns the gradient of a parameter: Parameter.Grad, or the part of a bucket that New made for it, or the slice that
// ReadyGrad got last. It stays where it is until the next ReadyGrad or Close, or until the Reducer's group ends. From then
// on Grad returns nil.
func (r *Reducer[T]) Grad(parameter int) []T {
	if !r.comm.Retain() {
		return nil
	}
	defer r.comm.Release()
	return r.gradient(parameter)
}

// gradient is Grad of a Reducer whose memory is retained.
func (r *Reducer[T]) gradient(parameter int) []T {
	if beside := r.gradientBeside(parameter); beside != nil {
		return beside
	}
	return r.slot(parameter)
}

// gradientBeside returns the gradient of a parameter if it lies beside its bucket, and is copied; otherwise nil.
func (r *Reducer[T]) gradientBeside(parameter int) []T {
	given := r.given[parameter]
	if given == nil && !r.views && !r.inPlace[parameter] {
		return r.params[parameter].Grad
	}
	return given
}

// slot returns the gradient's place in its bucket.
func (r *Reducer[T]) slot(parameter int) []T {
	at := r.places[parameter]
	return r.buckets[at.bucket].Gradients[at.lo:at.hi:at.hi]
}
