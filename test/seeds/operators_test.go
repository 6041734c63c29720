//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/transport/local"
)

// runOperators runs random operators of package primitive between random partitions, in both
// directions. In most jobs a rank gives up at some step.
func runOperators(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	random := rand.New(rand.NewPCG(seed, 31))
	interleave.SetProcessors([]int{1, 8}[random.IntN(2)])
	j := &operators{ranks: 2 + random.IntN(4), fault: operatorFaults[random.IntN(len(operatorFaults))], step: 1 << random.IntN(14)}
	j.step += random.IntN(j.step)
	j.by, j.errs = random.IntN(j.ranks), make([]error, j.ranks)
	for range 1 + random.IntN(3) {
		j.layouts = append(j.layouts, stress.NewLayout(random.Uint64(), j.ranks))
	}

	o.Patience = patience
	r := interleave.Run(t, o, func() {
		var all interleave.WaitGroup
		for rank, ep := range local.New(j.ranks) {
			all.Go(func() {
				interleave.SetLabel(fmt.Sprint("rank ", rank))
				c, err := ccl.New(context.Background(), ep)
				if err == nil {
					err = j.work(c)
					_ = c.Close()
				}
				j.errs[rank] = err
			})
		}
		all.Wait()
	})
	if r.Finding != nil {
		return r, nil
	}
	if err := j.check(); err != nil {
		return r, fmt.Errorf("%d ranks, rank %d %s at step %d: %w", j.ranks, j.by, j.fault, j.step, err)
	}
	return r, nil
}

// fault is what a rank does in the midst of operators.
type fault string

const (
	noFault fault = "does its part"
	aborts  fault = "aborts"
	cancels fault = "cancels its context"
	closes  fault = "closes its group"
	absent  fault = "closes its group before"
)

var operatorFaults = []fault{noFault, noFault, aborts, cancels, closes, absent}

// operators are a job of random operators, one after another.
type operators struct {
	ranks   int
	layouts []*stress.Layout
	by      int
	fault   fault
	step    int // at which rank by does it

	errs []error
}

// work does the part of a rank.
func (j *operators) work(c *ccl.Communicator) error {
	ctx := context.Background()
	if c.Rank() == j.by {
		switch j.fault {
		case aborts:
			interleave.At(j.step, func() { c.Abort(errEnough) })
		case cancels:
			canceled, cancel := context.WithCancel(ctx)
			ctx = canceled
			interleave.At(j.step, cancel)
		case closes:
			interleave.At(j.step, func() { _ = c.Close() })
		case absent:
			return c.Close()
		}
	}

	for _, l := range j.layouts {
		if err := l.Run(ctx, c); err != nil {
			return fmt.Errorf("%v: %w", l, err)
		}
	}
	return nil
}

// check returns what is wrong with the errors of the ranks.
func (j *operators) check() error {
	for rank, err := range j.errs {
		if j.fault == noFault && err != nil {
			return fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return checkBlame(j.errs, func(rank int) bool { return j.fault != noFault && rank == j.by && j.isOwn(j.errs[rank]) })
}

// isOwn reports whether an error of rank by is of what it has done.
func (j *operators) isOwn(err error) bool {
	lost, _ := errors.AsType[*dist.PeerLostError](err) // others have noted that it has left
	return err == nil || errors.Is(err, errEnough) || errors.Is(err, context.Canceled) || errors.Is(err, dist.ErrClosed) || lost != nil && lost.Rank == j.by
}
