package ddp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
	rebuilt bool // the buckets have their final order
	stats   Stats

	mu     sync.Mutex
	closed bool
	begun  bool // the step has
	step   int  // its number, from 1

	quiet   bool      // in NoSync
	joining bool      // in Join
	active  []uint8   // in Join: by rank, 1 if it trains in this step
	last    []uint8   // the same of the step before
	census  *ccl.Work // which gathers active
	next    int       // bucket to start
	ready   []bool
	order   []uint32 // in which parameters were ready
	touched []bool   // ready within NoSync since the last step
	used    []uint8  // by any rank in this step
	usedOf  *ccl.Request
	usedNow *ccl.Work // of usedOf in this step
	fixed   bool      // StaticGraph: after the first step
	idle    []bool    // then: never ready on this rank
	still   []bool    // then: never ready on any rank
	wrong   error     // of this rank in this step
}

// New makes a Reducer of the ranks of a group; that of all ranks is dist.Default. It is collective: all ranks pass the
// same parameters, in the same order, and the same options. The parameters and buffers get the values of
// rank 0. The slices belong to the Reducer as well until Close.
//
// Wrong arguments of any rank are *ccl.InvalidArgumentError on all; what differs between ranks is
// *ccl.MismatchError on all, whose field names the first parameter that differs. A nil group, which dist.NewGroup returns
// to ranks that are no members, is *ccl.InvalidArgumentError.
func New[T Float](ctx context.Context, group *dist.ProcessGroup, params []Parameter[T], opts Options[T]) (*Reducer[T], error) {
	opts.setDefaults()
	d := describe(params, &opts)
	if err := agree(ctx, group, d); err != nil {
		return nil, err
	}
	own, err := dist.NewGroup(nil, dist.WithGroup(group), dist.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	r := &Reducer[T]{group: own, comm: own.Communicator(), params: slices.Clone(params), opts: opts, hook: opts.Hook, views: d.Views, step: 1}
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
func (r *Reducer[T]) mark(what string) { r.comm.Mark(what, r.step) }

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
	r.ready = make([]bool, len(r.params))
	r.touched = make([]bool, len(r.params))
	r.used = make([]uint8, len(r.params))
	r.active = make([]uint8, r.comm.Size())
	r.idle, r.still = make([]bool, len(r.params)), make([]bool, len(r.params))
	r.usedOf = ccl.AllReduceInit(r.comm, r.used, r.used, ccl.Max, ccl.WithLabel("unused parameters"))
	r.arrange(reversed(len(r.params)))
	r.rebuilt = r.views
	for _, p := range r.params {
		if err := ccl.Broadcast(ctx, r.comm, p.Data, 0); err != nil {
			return err
		}
	}
	return r.shareBuffers(ctx, 0)
}

// inPlaceBytes is the length from which a gradient is worth a call of its own, which saves the copies to a bucket and back.
const inPlaceBytes = 256 << 10

// reducesInPlace reports whether a gradient of the program's own is reduced where it is. A hook gets buckets of the size
// that is asked for, and a gradient that may be unused must keep its value.
func (r *Reducer[T]) reducesInPlace(p Parameter[T]) bool {
	return p.Grad != nil && len(p.Grad)*ccl.DTypeOf[T]().Size() >= inPlaceBytes &&
		r.opts.Hook == nil && !r.opts.FindUnused && !r.opts.StaticGraph
}

// arrange makes the buckets of parameters in an order.
func (r *Reducer[T]) arrange(order []int) {
	sizes := make([]int, len(r.lengths))
	for i, n := range r.lengths {
		sizes[i] = n * ccl.DTypeOf[T]().Size()
	}
	r.buckets, r.places = arrange(r.memory, r.params, assign(sizes, order, r.opts.FirstBucketBytes, r.opts.BucketBytes, r.inPlace), r.inPlace)
	for _, b := range r.buckets {
		b.Comm, b.pending = r.comm, len(b.Parameters)
		r.setOp(b)
	}
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

// Grad returns the gradient of a parameter: Parameter.Grad, or the part of a bucket that New made for it.
// It stays where it is until Close.
func (r *Reducer[T]) Grad(parameter int) []T {
	if !r.views {
		return r.params[parameter].Grad
	}
	return r.slot(parameter)
}

// slot returns the gradient's place in its bucket.
func (r *Reducer[T]) slot(parameter int) []T {
	at := r.places[parameter]
	return r.buckets[at.bucket].Gradients[at.lo:at.hi:at.hi]
}

// Ready says that the gradient of a parameter is final in this step. It never waits. After Ready the
// gradient must not be used until Wait has returned. What is wrong with the call is an error of Wait.
func (r *Reducer[T]) Ready(parameter int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if parameter < 0 || parameter >= len(r.params) {
		r.mistake("parameter %d was ready, and there are %d, numbered from 0 as New got them", parameter, len(r.params))
		return
	}
	if r.quiet {
		r.touched[parameter] = true
		return
	}
	r.begin()
	if r.ready[parameter] {
		why := "was ready twice in a step: call Wait between batches, or accumulate them within NoSync"
		if r.idle[parameter] {
			why = "was ready, and was not in the first step: set FindUnused in place of StaticGraph if steps differ"
		}
		r.mistake("parameter %q %s", r.params[parameter].Name, why)
		return
	}
	r.bring(parameter)
}

// bring puts this rank's gradient of a parameter in its bucket.
func (r *Reducer[T]) bring(parameter int) {
	r.used[parameter] = 1
	r.order = append(r.order, uint32(parameter))
	if !r.views && !r.inPlace[parameter] {
		copy(r.slot(parameter), r.params[parameter].Grad)
	}
	r.complete(parameter)
}

func (r *Reducer[T]) mistake(format string, args ...any) {
	if r.wrong == nil {
		r.wrong = &ccl.InvalidArgumentError{Operation: "ddp.Ready", Message: fmt.Sprintf(format, args...)}
	}
}

// begin begins a step, if it has not begun.
func (r *Reducer[T]) begin() {
	if r.begun {
		return
	}
	r.begun = true
	r.mark(backward)
	clear(r.used)
	if r.joining {
		r.count(1)
	}
	for i, idle := range r.idle {
		if idle {
			clear(r.slot(i))
			r.complete(i)
		}
	}
}

// complete notes that the gradient of a parameter is in its bucket, and starts all buckets whose turn it is.
func (r *Reducer[T]) complete(parameter int) {
	r.ready[parameter] = true
	r.buckets[r.places[parameter].bucket].pending--
	for r.next < len(r.buckets) && r.buckets[r.next].pending == 0 {
		b := r.buckets[r.next]
		b.work = r.hook.Start(b)
		r.next++
	}
}

// Wait ends the step: it waits until all gradients are the mean over all ranks. If a gradient is not ready on this rank, and
// no option allows that, all ranks fail: this one with *UnreadyError, the others with *ccl.MismatchError. If Wait fails,
// also because ctx ends, the gradients are undefined, the Reducer's group has failed, and all ranks make a new
// Reducer or end. An exception is a mistake in a call of Ready: only this rank's Wait fails, and the group lives on.
func (r *Reducer[T]) Wait(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.quiet {
		return nil
	}
	r.begin()
	r.mark(waiting)
	err := r.finish(ctx)
	if err == nil {
		r.step++
		r.mark(computing)
	} else {
		r.stop(err)
		r.mark(failed)
	}
	clear(r.ready)
	clear(r.touched)
	for _, b := range r.buckets {
		b.pending, b.work = len(b.Parameters), nil
	}
	wrong := r.wrong
	r.begun, r.next, r.order, r.wrong, r.census, r.usedNow = false, 0, r.order[:0], nil, nil, nil
	return errors.Join(err, wrong)
}

// stop fails the step on all ranks, unless they know, and waits until no call uses the Reducer's memory.
func (r *Reducer[T]) stop(err error) {
	if _, rejected := errors.AsType[*UnreadyError](err); !rejected {
		r.comm.Abort(err)
	}
	r.settle()
}

// settle waits until no call uses the Reducer's memory, or gradients that are reduced in place. The group has failed.
func (r *Reducer[T]) settle() {
	works := []*ccl.Work{r.census, r.usedNow}
	for _, b := range r.buckets {
		works = append(works, b.work)
	}
	for _, w := range works {
		if w != nil {
			_ = w.Wait(context.Background()) // it ends at once
		}
	}
}

func (r *Reducer[T]) finish(ctx context.Context) error {
	waited := time.Now()
	if err := r.completeUnused(ctx); err != nil {
		return err
	}
	trains := r.comm.Size()
	root := 0
	if r.census != nil {
		if err := r.census.Wait(ctx); err != nil {
			return fmt.Errorf("ddp: %w", err)
		}
		trains, root = 0, slices.Index(r.active, 1)
		for _, a := range r.active {
			trains += int(a)
		}
		copy(r.last, r.active)
	}
	if r.findsUnused() {
		r.usedNow = r.usedOf.Start(context.Background())
	}
	used := r.usedNow
	for _, b := range r.buckets {
		if err := b.work.Wait(ctx); err != nil {
			return r.bucketError(b, err)
		}
		if err := r.hook.Finish(b); err != nil {
			return r.bucketError(b, err)
		}
		if r.joining {
			b.divide(trains)
		}
	}
	r.note(waited)
	if used != nil {
		if err := used.Wait(ctx); err != nil {
			return fmt.Errorf("ddp: %w", err)
		}
	}
	if !r.views {
		for i, p := range r.params {
			if r.inPlace[i] {
				continue
			}
			if used == nil && !r.still[i] || used != nil && r.used[i] != 0 {
				copy(p.Grad, r.slot(i))
			}
		}
	}
	if used != nil && r.opts.StaticGraph {
		r.fix()
	}
	if err := r.rebuild(ctx, root); err != nil {
		return fmt.Errorf("ddp: %w", err)
	}
	if r.opts.BroadcastBuffers {
		if err := r.shareBuffers(ctx, root); err != nil {
			return fmt.Errorf("ddp: %w", err)
		}
	}
	return nil
}

// findsUnused reports whether parameters may be not ready in this step.
func (r *Reducer[T]) findsUnused() bool {
	if r.opts.StaticGraph {
		return !r.fixed
	}
	return r.opts.FindUnused
}

// completeUnused makes zeros of gradients that are not ready, or fails all ranks' remaining buckets.
func (r *Reducer[T]) completeUnused(ctx context.Context) error {
	if r.next == len(r.buckets) {
		return nil
	}
	if r.findsUnused() {
		for i, ready := range r.ready {
			switch {
			case ready:
			case r.touched[i]:
				r.bring(i)
			default:
				clear(r.slot(i))
				r.complete(i)
			}
		}
		return nil
	}
	e := &UnreadyError{Rank: r.comm.Rank(), Static: r.opts.StaticGraph}
	for i, ready := range r.ready {
		if !ready {
			e.Parameters = append(e.Parameters, r.params[i].Name)
		}
	}
	for range r.buckets[r.next:] {
		_ = r.comm.Reject(ctx, e) // in place of the bucket
	}
	return e
}

// fix keeps the parameters of the first step for all others.
func (r *Reducer[T]) fix() {
	r.fixed = true
	trained := !r.joining || r.active[r.comm.Rank()] != 0
	for i := range r.params {
		r.still[i] = r.used[i] == 0
		r.idle[i] = r.still[i] || trained && !slices.Contains(r.order, uint32(i))
	}
}

// rebuild arranges the buckets, once, in the order in which the gradients of a rank were ready.
func (r *Reducer[T]) rebuild(ctx context.Context, root int) error {
	if r.rebuilt || r.findsUnused() {
		return nil
	}
	r.rebuilt = true
	order := make([]uint32, len(r.params))
	n := copy(order, r.order)
	for i := range r.params { // those that are never ready come last
		if !slices.Contains(r.order, uint32(i)) {
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

// NoSync runs steps without communication, to accumulate gradients: Ready and Wait do nothing within f. The
// first step after it reduces what the program has accumulated. With FindUnused, and in the first step with
// StaticGraph, a parameter that was ready within f counts as ready in that step.
func (r *Reducer[T]) NoSync(f func() error) error {
	defer r.setQuiet(r.setQuiet(true))
	return f()
}

func (r *Reducer[T]) setQuiet(quiet bool) (was bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, r.quiet = r.quiet, quiet
	return was
}

// Close ends this rank's use of the Reducer. Gradients that New made must not be used any more. A step that has begun, and
// for which Wait has not been called, fails on all ranks: when Close returns, nothing writes to gradients.
//
// Its errors are those of dist.DestroyProcessGroup for the Reducer's group: dist.ErrNotInitialized if that was destroyed with the
// default group before, *dist.UnfinishedError if calls of a Hook have not ended. Closing twice is a no-op.
func (r *Reducer[T]) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	if r.begun {
		r.comm.Abort(errors.New("ddp: the Reducer was closed within a step"))
		r.settle()
	}
	r.mu.Unlock()
	return dist.DestroyProcessGroup(dist.WithGroup(r.group))
}
