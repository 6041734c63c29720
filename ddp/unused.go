package ddp

import (
	"context"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// unused finds the parameters that steps leave out.
type unused struct {
	used     []uint8   // by parameter: 1 if any rank has it ready in this step
	exchange *ccl.Work // makes it so

	isFixed bool   // StaticGraph: the first step has ended
	outside []bool // by parameter: from then on this rank never has it ready
	nowhere []bool // by parameter: from then on no rank has it ready
}

// newUnused returns what is known of a number of parameters before the first step.
func newUnused(parameters int) unused {
	return unused{
		used:     make([]uint8, parameters),
		exchange: new(ccl.Work),
		outside:  make([]bool, parameters),
		nowhere:  make([]bool, parameters),
	}
}

// findsUnused reports whether parameters may be not ready in this step.
func (r *Reducer) findsUnused() bool {
	if r.opts.StaticGraph {
		return !r.unused.isFixed
	}
	return r.opts.FindUnused
}

// shareUsed starts to tell all ranks which parameters are used, if some may be unused.
func (r *Reducer) shareUsed() {
	if !r.findsUnused() {
		return
	}
	u := &r.unused
	r.step.sharing = u.exchange // has the error as well
	_ = ccl.AllReduce(context.Background(), r.comm, u.used, u.used, ccl.Max,
		ccl.WithLabel("unused parameters"), ccl.WithKey("ddp unused parameters"), ccl.WithWork(u.exchange))
}

// awaitUsed ends what shareUsed has started.
func (r *Reducer) awaitUsed(ctx context.Context) error {
	if r.step.sharing == nil {
		return nil
	}
	if err := r.await(ctx, r.step.sharing); err != nil {
		return inCall(err)
	}
	return nil
}

// isUsed reports, after awaitUsed, whether a rank has the parameter ready in this step.
func (r *Reducer) isUsed(parameter int) bool {
	if r.step.sharing == nil {
		return !r.unused.nowhere[parameter]
	}
	return r.unused.used[parameter] != 0
}

// fixUsed makes the parameters of the first step those of all others, with StaticGraph.
func (r *Reducer) fixUsed() {
	if r.step.sharing == nil || !r.opts.StaticGraph {
		return
	}
	u := &r.unused
	u.isFixed = true
	trained := !r.join.isOn || r.join.trains[r.comm.Rank()] != 0
	for i := range r.params {
		u.nowhere[i] = u.used[i] == 0
		u.outside[i] = u.nowhere[i] || trained && !slices.Contains(r.step.order, i)
	}
}
