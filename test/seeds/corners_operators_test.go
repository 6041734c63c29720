//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
	"github.com/goccl/goccl/transport"
)

// runHalo exchanges ghost cells until a rank is cancelled. No rank closes anything before all have
// ended: the error itself ends the others' exchanges.
func runHalo(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	const rounds = 4
	s := newScene(seed, 3, 4)
	by, moment := s.IntN(s.ranks), s.IntN(4000)
	var ended interleave.Int64
	o.Patience = patience
	r, err := s.run(t, o, func(c *ccl.Communicator) {
		bg, rank := context.Background(), c.Rank()
		world, err := partition.New(bg, c)
		if err != nil {
			s.alarmf("rank %d: %v", rank, err)
			return
		}
		op, err := primitive.NewHaloExchange[float32](bg, world, primitive.Halo{Left: 1, Right: 1})
		if err != nil {
			s.alarmf("rank %d: %v", rank, err)
			return
		}
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		var beside interleave.WaitGroup
		if rank == by {
			beside.Go(func() {
				pause(moment)
				cancel()
			})
		}
		x := primitive.NewTensor[float32](4)
		for range rounds {
			if _, err = op.Forward(ctx, x, x); err != nil {
				break
			}
		}
		aborted, _ := errors.AsType[*transport.AbortedError](err)
		isOther := aborted != nil && aborted.By == by || slices.Equal(rejectersIn(err), []int{by})
		if err != nil && !isOther && !(rank == by && errors.Is(err, context.Canceled)) {
			s.alarmf("rank %d, beside rank %d, which is cancelled: %v", rank, by, err)
		}
		if ended.Add(1) == int64(s.ranks) {
			s.end()
		}
		s.hold()
		beside.Wait()
		_ = errors.Join(op.Close(), world.Close())
	})
	return r, wrapScene(err, "%d ranks, waiting %d: rank %d is cancelled", s.ranks, s.waiting, by)
}

// runStep cancels the step of a rank that trains one parameter. The gradients are the program's once
// Wait has returned.
func runStep(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	const length = 700
	d := drawFor(seed)
	d.setProcessors()
	ranks := 2 + d.IntN(3)
	by, moment, delays := d.IntN(ranks), d.IntN(2<<d.IntN(10)), d.IntN(2<<d.IntN(7))
	spoiltBy := make([][]float32, ranks)
	o.Patience = patience
	r := interleave.Run(t, o, func() {
		_ = dist.Spawn(func(_ context.Context, rank int) error {
			interleave.SetLabel(label(rank))
			if err := dist.InitProcessGroup("ccl", dist.WithConfig(spawnConfig), dist.WithTimeout(spawnTimeout)); err != nil {
				return err
			}
			all, err := dist.Default()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			grad := make([]float32, length)
			model, err := ddp.New(context.Background(), all, []ddp.Parameter{ddp.Param("w", make([]float32, length), grad)}, ddp.Options{})
			if err != nil {
				return err
			}

			var beside interleave.WaitGroup
			defer beside.Wait()
			if rank == by {
				beside.Go(func() {
					pause(moment)
					cancel()
				})
			} else {
				pause(delays)
			}
			model.Ready(0)
			if err := model.Wait(ctx); err != nil {
				for i := range grad {
					grad[i] = spoilt
				}
				spoiltBy[rank] = grad
				return err
			}
			return errors.Join(model.Close(), dist.DestroyProcessGroup())
		}, dist.WithRanks(ranks))
	})
	for rank, grad := range spoiltBy {
		if slices.ContainsFunc(grad, func(x float32) bool { return x != spoilt }) {
			return r, fmt.Errorf("buffers: the gradient of rank %d is written after its step has failed; rank %d of %d is cancelled", rank, by, ranks)
		}
	}
	return r, nil
}
