package ddp

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// AverageParameters makes the parameters of all ranks their mean, bit by bit equal. It is for loops
// that communicate seldom: ranks train by themselves, and call it after every so many steps (local
// SGD; PeriodicModelAverager of torch).
//
//	if step < warmUp { // post-local SGD: at first, means of gradients
//		err = model.Wait(ctx)
//	}
//	// The optimizer, on all ranks.
//	if step >= warmUp && step%16 == 0 {
//		err = model.AverageParameters(ctx)
//	}
//
// The steps between are made without Ready and Wait, and without Options.Shard. All ranks call it,
// between the same steps. Buffers and the optimizer's state stay as they are.
//
// It has the errors of Verify but for those of parameters that differ. If a call fails, the
// parameters are undefined, and the Reducer's group has failed.
func (r *Reducer) AverageParameters(ctx context.Context) error {
	if err := r.beginCheckpoint("AverageParameters"); err != nil {
		return err
	}
	defer r.comm.Release()
	if err := r.errLogical("AverageParameters", "a mean over ranks depends on their number"); err != nil {
		return err
	}

	for _, average := range []func(context.Context, *Reducer) error{
		averageOf[float32], averageOf[float64], averageOf[half.Float16], averageOf[half.BFloat16],
	} {
		if err := average(ctx, r); err != nil {
			return inCall(err)
		}
	}
	return nil
}

// averageOf makes the parameters of a type their mean.
func averageOf[T Float](ctx context.Context, r *Reducer) error {
	var all [][]T
	for _, p := range r.params {
		if values, ok := p.elements.(vector[T]); ok && len(values) > 0 {
			all = append(all, values)
		}
	}
	if all == nil {
		return nil
	}
	return ccl.AllReduceCoalesced(ctx, r.comm, all, ccl.Avg, ccl.WithLabel("parameters"), ccl.WithKey("ddp.AverageParameters"))
}

// Outer is the outer step of a loop that communicates seldom: ranks train by themselves for many
// steps, and the outer step moves the parameters that all had before towards the mean of those that
// they have now, by SGD with Nesterov momentum (DiLoCo, Douillard et al., 2023).
//
//	outer, err := ddp.NewOuter(model, 0.7, 0.9)
//	for step, batch := range batches {
//		// Forward, backward and the optimizer, without Ready and Wait.
//		if (step+1)%500 == 0 {
//			err = outer.Step(ctx)
//		}
//	}
//
// It keeps a copy of the parameters, and the momentum. Save and Load have the momentum, as
// NewOptimizerState; with Options.Shard a rank has 1/R of it.
type Outer struct {
	reducer        *Reducer
	rate, momentum float64
	params         []outerParameter
}

// NewOuter makes the outer step of a Reducer, of which all ranks have the same parameters now. It
// is made before Load, with the same rate and momentum on all ranks. A Reducer has one. Rate 1 and
// momentum 0 make outer steps means.
//
// A rate or a momentum that is negative or not finite is *ccl.InvalidArgumentError. Other errors
// are those of NewOptimizerState.
func NewOuter(r *Reducer, rate, momentum float64) (*Outer, error) {
	if !(rate >= 0 && rate*0 == 0 && momentum >= 0 && momentum*0 == 0) {
		return nil, invalid("ddp.NewOuter", "the rate is %v and the momentum %v: they must be finite and at least 0", rate, momentum)
	}
	if err := r.retain("NewOuter"); err != nil {
		return nil, err
	}
	defer r.comm.Release()
	if err := r.errLogical("NewOuter", "a mean over ranks depends on their number"); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()

	o := &Outer{reducer: r, rate: rate, momentum: momentum}
	var states []Tensor
	for i := range r.params {
		p, state := r.params[i].gradient.newOuter(r, i)
		o.params, states = append(o.params, p), append(states, state)
	}
	if err := r.addStates("NewOuter", states); err != nil {
		return nil, err
	}
	r.outer = o
	return o, nil
}

// Step is the outer step. All ranks call it, between the same steps. It is a step of the Reducer,
// with Ready and Wait, in which the gradients are what the parameters have moved by, the other way
// round; Options.Hooks shorten what it sends. Gradients are undefined then.
//
// Its errors are those of Wait and of the function Step. Outside Join, ranks that call something
// else, or have another rate or momentum, are a *ccl.MismatchError, and no parameter changes.
func (o *Outer) Step(ctx context.Context) error {
	r := o.reducer
	if err := r.beginUpdate("Outer.Step"); err != nil {
		return err
	}
	defer r.comm.Release()
	if err := o.awaitRanks(ctx); err != nil {
		return err
	}
	for i := len(o.params) - 1; i >= 0; i-- {
		isOutside := r.unused.outside[i] // its gradient counts as zeros
		o.params[i].begin(isOutside)
		if !isOutside {
			r.Ready(i)
		}
	}

	if err := r.Wait(ctx); err != nil {
		return err
	}

	err := r.updateParts(ctx, func(parameter int) (isChosen bool) {
		if !r.unused.nowhere[parameter] {
			o.params[parameter].update(o.rate, o.momentum)
		}
		return true
	})
	if err == nil {
		r.renewOuter()
	}
	return err
}

// awaitRanks returns when all ranks make the same outer step, or an error. Within Join ranks that
// are done make steps of the Reducer only.
func (o *Outer) awaitRanks(ctx context.Context) error {
	if o.reducer.join.isOn {
		return nil
	}
	key := fmt.Sprintf("ddp.Outer.Step, rate %v and momentum %v", o.rate, o.momentum)
	if err := o.reducer.comm.Barrier(ctx, ccl.WithLabel("outer step"), ccl.WithKey(key)); err != nil {
		return inCall(err)
	}
	return nil
}

// renewOuter makes the parameters those from which ranks begin, if there is an outer step.
func (r *Reducer) renewOuter() {
	if r.outer == nil {
		return
	}
	for _, p := range r.outer.params {
		p.renew()
	}
}

// outerParameter is a parameter in an Outer.
type outerParameter interface {
	// begin makes the gradient what the parameter has moved by, unless it is outside of the step, and
	// the parameter what it was before.
	begin(isOutside bool)
	// update moves this rank's part by the mean.
	update(rate, momentum float64)
	// renew copies the parameter.
	renew()
}

// outerOf is a parameter of a type in an Outer.
type outerOf[T Float] struct {
	values, before []T
	velocity       []T // of this rank's part
	gradient       *gradientOf[T]
}

func (g *gradientOf[T]) newOuter(r *Reducer, parameter int) (outerParameter, Tensor) {
	values := r.params[parameter].elements.(vector[T])
	velocity, state := newState[T](r, parameter, "outer")
	o := &outerOf[T]{values, make([]T, len(values)), velocity, g}
	o.renew()
	return o, state
}

func (o *outerOf[T]) begin(isOutside bool) {
	gradient := o.gradient.current()
	if isOutside {
		gradient = nil
	}
	for i := range gradient {
		gradient[i] = fromFloat64[T](toFloat64(o.before[i]) - toFloat64(o.values[i]))
	}
	copy(o.values, o.before)
}

func (o *outerOf[T]) update(rate, momentum float64) {
	values := o.values[o.gradient.low:o.gradient.high]
	for i, x := range o.gradient.part() {
		g := toFloat64(x)
		v := float64(momentum*toFloat64(o.velocity[i])) + g
		o.velocity[i] = fromFloat64[T](v)
		values[i] = fromFloat64[T](toFloat64(values[i]) - float64(rate*(g+float64(momentum*v))))
	}
}

func (o *outerOf[T]) renew() { copy(o.before, o.values) }
