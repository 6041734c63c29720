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
