package ddp

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl"
)

// Ready says that the gradient of a parameter is final in this step. It never waits. After Ready
// the gradient must not be used until Wait has returned, or the next of Shards begins. What is
// wrong with the call is an error of Wait.
func (r *Reducer) Ready(parameter int) { r.noteReady(parameter, func() error { return nil }) }

// ReadyGrad is Ready for a program that allocates gradients anew: the parameter's gradient is this
// slice until the next ReadyGrad. Grad returns it, Ready reads it, and Wait leaves the mean in it.
//
// It has the type and the length of the parameter, and memory of this rank and parameter alone: two
// parameters that are ready with the same slice are a mistake. It is copied, also if it is long.
//
// Within NoSync the slice that was given last counts: it holds the sum of all batches.
func ReadyGrad[T Float](r *Reducer, parameter int, gradient []T) {
	r.noteReady(parameter, func() error {
		g, err := gradientIn[T](r, "Ready", parameter)
		if err != nil {
			return err
		}
		p := &r.params[parameter]
		if count := p.elements.count(); len(gradient) != count {
			return invalid("ddp.Ready", "parameter %q has %d elements, and the gradient that ReadyGrad got %d", p.name, count, len(gradient))
		}
		g.fresh = gradient
		return nil
	})
}

// noteReady notes that a gradient is ready. use makes the gradient that is given the parameter's.
func (r *Reducer) noteReady(parameter int, use func() error) {
	if !r.comm.Retain() {
		return // Wait returns the error
	}
	defer r.comm.Release()
	r.mu.Lock()
	defer r.mu.Unlock()

	err := r.checkReady(parameter)
	if err == nil {
		err = use()
	}
	switch {
	case err != nil:
		r.step.noteMistake(err)
	case r.noSync.isOn:
		r.noSync.accumulated[parameter] = true
	default:
		r.putGradient(parameter)
	}
}

// checkReady begins a step outside NoSync, and returns an error if a parameter cannot be ready.
func (r *Reducer) checkReady(parameter int) error {
	if parameter < 0 || parameter >= len(r.params) {
		return r.noParameter("Ready", parameter, "was ready")
	}
	if r.noSync.isOn {
		return nil
	}

	r.begin()
	switch {
	case r.logical.tree != nil && r.logical.current < r.logical.tree.low:
		return invalid("ddp.Ready", "parameter %q was ready outside a loop over Shards, which Options.LogicalShards needs", r.params[parameter].name)
	case !r.step.ready[parameter]:
		return nil
	case r.unused.outside[parameter]:
		return r.outsideStep(parameter)
	}
	return invalid("ddp.Ready", "parameter %q was ready twice in a step: call Wait between batches, or accumulate them within NoSync", r.params[parameter].name)
}

// noParameter returns the error of a number that no parameter has.
func (r *Reducer) noParameter(operation string, parameter int, verb string) error {
	return invalid("ddp."+operation, "parameter %d %s, and there are %d, numbered from 0 as New got them", parameter, verb, len(r.params))
}

// outsideStep returns the error of a parameter that StaticGraph excludes.
func (r *Reducer) outsideStep(parameter int) error {
	return invalid("ddp.Ready", "parameter %q was ready, and was not in the first step: set FindUnused in place of StaticGraph if steps differ", r.params[parameter].name)
}

// putGradient puts this rank's gradient of a parameter in its bucket.
func (r *Reducer) putGradient(parameter int) {
	r.unused.used[parameter] = 1
	r.step.order = append(r.step.order, parameter)
	r.noteShared(parameter)
	r.params[parameter].gradient.put()
	r.complete(parameter)
}

// noteShared notes a mistake if the gradient that ReadyGrad got is also that of another parameter.
func (r *Reducer) noteShared(parameter int) {
	first := r.params[parameter].gradient.given()
	if first == nil {
		return
	}
	if other, isShared := r.step.freshOf[first]; isShared {
		r.step.noteMistake(invalid("ddp.Ready", "parameters %q and %q were ready with the same gradient: ReadyGrad takes a slice of each parameter's own",
			r.params[other].name, r.params[parameter].name))
	}
	r.step.freshOf[first] = parameter
}

// putZeros puts zeros in the bucket of a parameter.
func (r *Reducer) putZeros(parameter int) {
	r.params[parameter].gradient.putZeros()
	r.complete(parameter)
}

// complete notes that the gradient of a parameter is in its bucket, and starts all buckets whose
// turn it is.
func (r *Reducer) complete(parameter int) {
	r.step.ready[parameter] = true
	r.buckets[r.params[parameter].bucket].pending--
	for r.logical.unready == nil && r.step.next < len(r.buckets) && r.buckets[r.step.next].pending == 0 {
		b := &r.buckets[r.step.next]
		r.step.next++
		if r.logical.isBeforeLast() {
			b.add(r.logical.current)
		} else {
			r.start(b)
		}
	}
}

// What all ranks get if a hook does not return as it must.
var (
	errNoWork   = errors.New("ddp: Hook.Start has returned no Work: it has returned nil, has panicked, or has ended its goroutine")
	errNotEnded = errors.New("ddp: Wait has not ended the step: the hook has panicked, or has ended its goroutine")
)

// start starts the reduction of a bucket. If the hook does not, the step fails on all ranks, also
// where the program recovers from a panic.
func (r *Reducer) start(b *bucket) {
	defer func() {
		if b.work == nil {
			r.step.mistake = errNoWork // also with one rank, whose group does not fail
			r.comm.Abort(errNoWork)
			b.work = new(ccl.Work) // fails at once, and has the error as well
			_ = r.comm.Barrier(context.Background(), ccl.WithWork(b.work))
		}
	}()
	op := ccl.Avg
	switch {
	case r.logical.tree != nil:
		op = ccl.AvgOf(r.logical.tree.shards)
	case r.sumsGradients():
		op = ccl.Sum
	}
	b.work = b.start(op)
}
