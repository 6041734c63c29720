//go:build interleave

package seeds

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// A rank that stops at any step of a call, also after it has shown itself to the others, is named by
// the timeout of those that wait for it: also where these wait for one another.
func TestStalledRankIsNamed(t *testing.T) {
	const stalled = 1
	for _, c := range []struct {
		ranks, steps int
		call         func(ctx context.Context, c *ccl.Communicator) error
	}{
		{3, 200, func(ctx context.Context, c *ccl.Communicator) error { return c.Barrier(ctx) }},
		{4, 400, func(ctx context.Context, c *ccl.Communicator) error {
			x := make([]int32, 5)
			return ccl.AllReduce(ctx, c, x, x, ccl.Sum, ccl.WithAlgorithm("tree"))
		}},
		{4, 300, func(ctx context.Context, c *ccl.Communicator) (err error) {
			switch x := []int32{5}; c.Rank() {
			case 0:
				err = ccl.Send(ctx, c, x, stalled, 0)
			case stalled:
				_, err = ccl.Recv(ctx, c, x, 0, 0)
			}
			return err
		}},
	} {
		for _, waiting := range []local.Waiting{local.Poll, local.Park} {
			for step := range c.steps {
				errs := make([]error, c.ranks)
				r := interleave.Run(t, interleave.Options{Seed: uint64(step)}, func() {
					interleave.At(1+step, func() { interleave.Stall(label(stalled), 90*time.Second) })
					var end interleave.WaitGroup
					end.Add(c.ranks)
					each(local.NewWaiting(c.ranks, waiting), func(rank int, ep transport.Endpoint) {
						bg := context.Background()
						g, err := ccl.New(bg, ep)
						if err == nil {
							err = c.call(bg, g)
						}
						errs[rank] = err
						end.Done()
						end.Wait()
						_ = g.Close()
					})
				})
				if r.Finding != nil {
					t.Fatalf("step %d: %v", step, r.Finding)
				}
				for rank, err := range errs {
					late, ok := errors.AsType[*transport.TimeoutError](err)
					if err != nil && (!ok || !slices.Equal(slices.Concat(late.Missing, late.Behind), []int{stalled})) {
						t.Errorf("%d ranks, waiting %d, step %d, rank %d: %v", c.ranks, waiting, step, rank, err)
					}
				}
			}
		}
	}
}

// slowOp is a sum that takes longer than its call may.
var slowOp = ccl.NewOp("slow", true, func(dst, a, b []float32) {
	interleave.Sleep(3 * time.Minute)
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
})

// If the one rank that runs a call for all takes too long, the others name it and not each other,
// also those whose own time is not over.
func TestSlowRunnerIsNamed(t *testing.T) {
	const ranks, slow = 3, 2
	arrivals := [ranks]time.Duration{0, 30 * time.Second, 31 * time.Second}
	for seed := range uint64(40) {
		var errs [ranks]error
		interleave.SetProcessors(1) // nobody helps
		r := interleave.Run(t, interleave.Options{Seed: seed}, func() {
			each(local.NewWaiting(ranks, local.Park), func(rank int, ep transport.Endpoint) {
				bg := context.Background()
				c, err := ccl.New(bg, ep)
				if err == nil {
					interleave.Sleep(arrivals[rank])
					x := make([]float32, 400)
					err = ccl.AllReduce(bg, c, x, x, slowOp)
				}
				errs[rank] = err
				_ = c.Close()
			})
		})
		if r.Finding != nil {
			t.Fatalf("seed %d: %v", seed, r.Finding)
		}
		for rank, err := range errs {
			late, ok := errors.AsType[*transport.TimeoutError](err)
			if !ok || !slices.Equal(slices.Concat(late.Missing, late.Behind), []int{slow}) {
				t.Errorf("seed %d, rank %d: %v", seed, rank, err)
			}
		}
	}
}

// A receive names the rank that its sender waits for: one that has given up the sender's message
// before, and makes no other call.
func TestWhoGaveUpIsNamed(t *testing.T) {
	const late = 2
	for _, waiting := range []local.Waiting{local.Poll, local.Park} {
		for seed := range uint64(60) {
			var errs [3]error
			r := interleave.Run(t, interleave.Options{Seed: seed}, func() {
				var end interleave.WaitGroup
				end.Add(len(errs))
				each(local.NewWaiting(len(errs), waiting), func(rank int, ep transport.Endpoint) {
					bg := context.Background()
					g, err := ccl.New(bg, ep)
					x := make([]int32, 1)
					if rank > 0 {
						interleave.Sleep(5 * time.Second)
					}
					switch {
					case err != nil:
					case rank == late:
						err = ccl.Send(bg, g, x, 0, 0, ccl.WithTimeout(10*time.Second))
					default:
						_, err = ccl.Recv(bg, g, x, late, rank, ccl.WithTimeout(time.Second))
					}
					errs[rank] = err
					end.Done()
					end.Wait()
					_ = g.Close()
				})
			})
			if r.Finding != nil {
				t.Fatalf("seed %d: %v", seed, r.Finding)
			}
			for rank, named := range []int{late, 0, 0} {
				if got := namedRanks(errs[rank]); !slices.Equal(got, []int{named}) {
					t.Errorf("waiting %d, seed %d, rank %d: %v, want rank %d named", waiting, seed, rank, errs[rank], named)
				}
			}
		}
	}
}

// A rank that stops while it fails a group, for itself or for a member that has not come, keeps no
// other one from failing it.
func TestStalledInFailKeepsNobody(t *testing.T) {
	const stalled, ranks = 0, 2
	for step := range 40 {
		var took time.Duration
		var failures [ranks]*transport.Failure
		r := interleave.Run(t, interleave.Options{Seed: uint64(step)}, func() {
			eps := local.NewWaiting(ranks, local.Park)
			interleave.At(1+step, func() { interleave.Stall(label(stalled), time.Minute) })
			start := time.Now()
			each(eps, func(rank int, ep transport.Endpoint) {
				failures[rank] = eps[1].Fail(&transport.Failure{Kind: transport.FailureAborted, By: 1, Text: label(rank)})
				if rank != stalled {
					took = time.Since(start)
				}
			})
			for _, ep := range eps {
				_ = ep.Close()
			}
		})
		switch {
		case r.Finding != nil:
			t.Fatalf("step %d: %v", step, r.Finding)
		case took > 0:
			t.Errorf("step %d: it took %v", step, took)
		case failures[0] == nil || failures[0] != failures[1]:
			t.Errorf("step %d: %v and %v", step, failures[0], failures[1])
		}
	}
}
