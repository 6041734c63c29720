package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// A step of long buckets whose Wait gives up on one rank, because its context ends at any moment, fails on all ranks or on
// none.
func TestCancelledSteps(t *testing.T) {
	everywhere(t, "cancelled steps", 2, func(t *testing.T, all []outcome) {
		succeeded(t, all)
		for i, steps := range all[0].Values {
			for rank, o := range all {
				require.Equal(t, steps, o.Values[i], "Reducer %d: rank 0: %s; rank %d: %s", i, all[0].Texts[i], rank, o.Texts[i])
			}
		}
	})
}

// cancelledSteps makes steps until one fails, with many Reducers, and notes how many have succeeded with each. Buckets are
// so long that ranks use each other's memory: short ones travel with the synchronisation. Every other Reducer has
// gradients of the program's own, so long that they are reduced in place: between processes by copies.
func cancelledSteps(rank, _ int, o *outcome) error {
	random := rand.New(rand.NewPCG(uint64(rank), 3))
	longest := 400 // pauses
	if runtime.GOMAXPROCS(0) == 1 {
		longest = 20 // each lasts until the scheduler takes the processor from a step
	}
	for i := range 40 {
		params := []ddp.Parameter{ddp.Param("a", make([]float64, 20_000), nil), ddp.Param("b", make([]float64, 20_000), nil)}
		if i%2 == 1 {
			values, gradients := make([]float64, 40_000), make([]float64, 40_000)
			params = []ddp.Parameter{ddp.Param("a", values, gradients), ddp.Param("b", slices.Clone(values), slices.Clone(gradients))}
		}
		r, err := ddp.New(bg, world(), params, ddp.Options{FirstBucketBytes: 8})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(bg)
		steps := 0
		for {
			own := ctx
			if steps == 0 { // ends with a short broadcast of the order of the buckets, which travels with the synchronisation
				own = bg
			}
			if steps == 1 && rank == 1 {
				pauses := random.IntN(longest)
				go func() {
					for range pauses {
						runtime.Gosched()
					}
					cancel()
				}()
			}
			r.Ready(1)
			r.Ready(0)
			if err := r.Wait(own); err != nil {
				o.Texts = append(o.Texts, err.Error())
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

// A Wait whose gradients are not ready, and whose context has ended, does not wait for ranks that
// have not come to the step: they learn of it when they do.
func TestUnreadyWithEndedContext(t *testing.T) {
	hasReturned := make(chan struct{})
	errs := spawn(t, 2, func(rank int) error {
		r, g, err := three(ddp.Options{}, false)
		if err != nil {
			return err
		}
		if rank == 1 {
			ctx, cancel := context.WithCancel(bg)
			cancel()
			r.Ready(2)
			err := r.Wait(ctx)
			close(hasReturned)
			return err
		}
		<-hasReturned
		return readyAll(r, g)
	})
	require.ErrorAs(t, errs[1], new(*ddp.UnreadyError))
	aborted, ok := errors.AsType[*dist.AbortedError](errs[0])
	require.True(t, ok, "%v", errs[0])
	require.Equal(t, 1, aborted.By)
	require.Contains(t, errs[0].Error(), "no gradient was ready for a, b")
}

// Without a context a method is refused, also where the step has failed for another reason; the other
// ranks learn of it, unless their step is whole.
func TestNilContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	var none context.Context
	for name, call := range map[string]func(r *ddp.Reducer, ctx context.Context) error{
		"Wait":          func(r *ddp.Reducer, ctx context.Context) error { return r.Wait(ctx) },
		"Wait, unready": func(r *ddp.Reducer, ctx context.Context) error { r.Ready(2); return r.Wait(ctx) },
		"Wait, ready": func(r *ddp.Reducer, ctx context.Context) error {
			for i := range 3 {
				r.Ready(i)
			}
			return r.Wait(ctx)
		},
		"Verify": func(r *ddp.Reducer, ctx context.Context) error { return r.Verify(ctx) },
		"Save":   func(r *ddp.Reducer, ctx context.Context) error { return r.Save(ctx, path, 1) },
		"Load":   func(r *ddp.Reducer, ctx context.Context) error { return r.Load(ctx, path, nil) },
		"Join": func(r *ddp.Reducer, ctx context.Context) error {
			return r.Join(ctx, func() error { return nil })
		},
		"Step": func(r *ddp.Reducer, ctx context.Context) error {
			return errors.Join(readyAll(r, make([][]float64, 3)), ddp.Step(ctx, r, func(ddp.Part[float64]) {}))
		},
	} {
		for _, without := range []int{1, 2} { // ranks
			t.Run(fmt.Sprintf("%s, %d", name, without), func(t *testing.T) {
				for rank, err := range spawn(t, 2, func(rank int) error {
					r, _, err := three(ddp.Options{}, true)
					if err != nil {
						return err
					}
					ctx := none
					if rank >= without {
						ctx = bg
					}
					return recovered(func() error { return call(r, ctx) })
				}) {
					isWhole := name == "Wait, ready" || name == "Step"
					if isWhole && rank >= without {
						require.NoError(t, err, "rank %d", rank)
						continue
					}
					require.Error(t, err, "rank %d", rank)
					require.NotContains(t, err.Error(), "recovered")
					if rank < without {
						require.ErrorContains(t, err, "the context is nil")
					}
				}
			})
		}
	}
}
