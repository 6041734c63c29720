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
// the timeout of those that wait for it.
func TestStalledRankIsNamed(t *testing.T) {
	const ranks, stalled = 3, 1
	for _, waiting := range []local.Waiting{local.Poll, local.Park} {
		for step := range 200 {
			var errs [ranks]error
			r := interleave.Run(t, interleave.Options{Seed: uint64(step)}, func() {
				interleave.At(1+step, func() { interleave.Stall(label(stalled), 90*time.Second) })
				var end interleave.WaitGroup
				end.Add(ranks)
				each(local.NewWaiting(ranks, waiting), func(rank int, ep transport.Endpoint) {
					bg := context.Background()
					c, err := ccl.New(bg, ep)
					if err == nil {
						err = c.Barrier(bg)
					}
					errs[rank] = err
					end.Done()
					end.Wait()
					_ = c.Close()
				})
			})
			if r.Finding != nil {
				t.Fatalf("step %d: %v", step, r.Finding)
			}
			for rank, err := range errs {
				late, ok := errors.AsType[*transport.TimeoutError](err)
				if err != nil && (!ok || !slices.Equal(slices.Concat(late.Missing, late.Behind), []int{stalled})) {
					t.Errorf("waiting %d, step %d, rank %d: %v", waiting, step, rank, err)
				}
			}
		}
	}
}
