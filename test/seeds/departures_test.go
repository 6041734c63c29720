//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// runDepartures runs a program of calls and messages on goroutines, in which ranks leave.
func runDepartures(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	d := drawFor(seed)
	ranks := 2 + d.IntN(4)
	p := stress.NewDepartures(seed, stress.Options{Ranks: ranks, Events: 10, Longest: 40, Algorithms: []string{"direct", "ring", "tree"}},
		stress.Close, stress.Close, stress.Abort)
	accounts, errs := make([]*stress.Account, ranks), make([]error, ranks)
	waiting := d.machine()

	o.Patience = patience
	var eps endpoints
	r := interleave.Run(t, o, func() {
		each(eps.watch(local.NewWaiting(ranks, waiting)), func(rank int, ep transport.Endpoint) {
			c, err := ccl.New(context.Background(), ep)
			if err == nil {
				accounts[rank], err = p.Run(context.Background(), c, stress.Exits{})
			}
			errs[rank] = err
		})
		for _, a := range accounts {
			a.Settle(time.Minute)
		}
	})
	if r.Finding != nil {
		return r, nil
	}
	if err := errors.Join(errs...); err != nil {
		return r, err
	}
	return r, errors.Join(p.Check(accounts), eps.check())
}

// patience is longer than ranks wait in programs without timeouts that fall due: for a moment, a
// message that does not come, or the failure that has ended a context. The tick of a rank's ticker is
// later.
const patience = 2 * time.Second

// runProgram runs a program of calls, messages and groups on goroutines, in which nothing fails.
func runProgram(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	d := drawFor(seed)
	ranks := 2 + d.IntN(4)
	p := stress.New(seed, stress.Options{Ranks: ranks, Events: 25, Longest: 40, Algorithms: []string{"direct", "ring", "tree", "doubletree"}})
	errs := make([]error, ranks)
	waiting := d.machine()

	o.Patience = patience
	var eps endpoints
	r := interleave.Run(t, o, func() {
		each(eps.watch(local.NewWaiting(ranks, waiting)), func(rank int, ep transport.Endpoint) {
			c, err := ccl.New(context.Background(), ep)
			if err == nil {
				err = errors.Join(p.Run(context.Background(), c), c.Close())
			}
			errs[rank] = err
		})
	})
	if r.Finding == nil {
		errs = append(errs, eps.check())
	}
	return r, errors.Join(errs...)
}

// drawing draws the job of a seed, except what package stress draws.
type drawing struct{ *rand.Rand }

func drawFor(seed uint64) drawing { return drawing{rand.New(rand.NewPCG(seed, 30))} }

// machine draws how many processors there seem to be, and how ranks wait.
func (d drawing) machine() local.Waiting {
	d.setProcessors()
	return []local.Waiting{local.Auto, local.Poll, local.Park}[d.IntN(3)]
}

// setProcessors draws how many processors there seem to be.
func (d drawing) setProcessors() { interleave.SetProcessors(1 + d.IntN(8)) }

// each runs f for all ranks, in goroutines with their names, and returns when all have ended.
func each(endpoints []transport.Endpoint, f func(rank int, ep transport.Endpoint)) {
	var all interleave.WaitGroup
	for rank, ep := range endpoints {
		all.Go(func() {
			interleave.SetLabel(label(rank))
			f(rank, ep)
		})
	}
	all.Wait()
}

func label(rank int) string { return fmt.Sprint("rank ", rank) }
