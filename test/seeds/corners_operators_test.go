//go:build interleave

package seeds

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
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
	return r, s.wrap(err, "rank %d is cancelled", by)
}
