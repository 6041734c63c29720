package ddp_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
)

// A step whose Wait gives up on one rank, because its context ends at any moment, fails on all ranks or on none.
func TestCancelledSteps(t *testing.T) {
	everywhere(t, "cancelled steps", 2, func(t *testing.T, all []outcome) {
		succeeded(t, all)
		for rank, o := range all {
			require.Equal(t, all[0].Values, o.Values, "rank %d", rank)
		}
	})
}

// cancelledSteps makes steps until one fails, with many Reducers, and notes how many have succeeded with each.
func cancelledSteps(rank, _ int, o *outcome) error {
	random := rand.New(rand.NewPCG(uint64(rank), 3))
	for range 30 {
		r, g, err := three(ddp.Options[float64]{}, true)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(bg)
		if rank == 1 {
			pauses := random.IntN(400)
			go func() {
				for range pauses {
					runtime.Gosched()
				}
				cancel()
			}()
		}
		steps := 0
		for {
			for i := range g {
				r.Ready(2 - i)
			}
			if err := r.Wait(ctx); err != nil {
				break
			}
			steps++
		}
		cancel()
		o.Values = append(o.Values, float64(steps))
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}
