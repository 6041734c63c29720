package dist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Messages use global ranks, in groups too.
func TestMessages(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		all, err := dist.Default()
		if err != nil {
			return err
		}
		three, err := dist.NewGroup([]int{1, 2, 4})
		if err != nil {
			return err
		}
		for _, g := range []*dist.ProcessGroup{all, three} {
			if g == nil {
				continue
			}
			in, ranks, me := dist.WithGroup(g), g.Ranks(), g.Rank()
			next, previous := ranks[(me+1)%len(ranks)], ranks[(me+len(ranks)-1)%len(ranks)]

			output := make([]int64, 3)
			source, err := dist.SendRecv(output, previous, elements(rank, 3), next, 7, in)
			if err != nil {
				return err
			}
			assert.Equal(t, previous, source)
			assert.Equal(t, elements(previous, 3), output)

			works, err := dist.BatchIsendIrecv([]dist.P2POp{
				dist.RecvOp(output, next, 8),
				dist.SendOp(elements(rank, 3), previous, 8),
			}, in)
			if err != nil {
				return err
			}
			assert.NoError(t, errors.Join(works[0].Wait(ctx), works[1].Wait(ctx)))
			assert.Equal(t, elements(next, 3), output)
			assert.Equal(t, next, works[0].Source())

			if first := ranks[0]; rank != first {
				if err := dist.Send([]int{rank}, first, 9, in); err != nil {
					return err
				}
			} else {
				var from []int
				for range ranks[1:] {
					tensor := make([]int, 1)
					source, err := dist.Recv(tensor, dist.AnySource, 9, in)
					if err != nil {
						return err
					}
					assert.Equal(t, source, tensor[0])
					from = append(from, source)
				}
				assert.ElementsMatch(t, ranks[1:], from)
			}
			work, err := dist.Irecv(output, dist.AnySource, 10, in) // from itself
			if err != nil {
				return err
			}
			if err := dist.Send(elements(rank, 3), rank, 10, in); err != nil {
				return err
			}
			assert.NoError(t, work.Wait(ctx))
			assert.Equal(t, rank, work.Source())
		}
		return dist.Barrier()
	}), dist.WithRanks(5))
	require.NoError(t, err)
}

// Rejected messages leave the group intact, even if only one rank's is rejected.
func TestRefusedMessages(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		pair, err := dist.NewGroup([]int{0, 2})
		if err != nil {
			return err
		}
		if rank == 0 {
			in, one := dist.WithGroup(pair), make([]int, 1)
			refusals := map[string]error{
				"ccl: send: 3 is not in the group of ranks 0-2":      dist.Send(one, 3, 0),
				"ccl: send: 1 is not in the group of ranks 0, 2":     dist.Send(one, 1, 0, in),
				"ccl: send: the tag is -1, and must not be negative": dist.Send(one, 1, -1),
				"is not in the group of ranks 0-2":                   dist.Send(one, dist.AnySource+1, 0),
			}
			_, refusals["ccl: recv: -1 is not in the group of ranks 0-2"] = dist.Recv(one, -1, 0)
			_, refusals["ccl: send_recv: 4 is not in the group of ranks 0-2"] = dist.SendRecv(one, 4, []int{1}, 0, 0)
			_, refusals["ccl: send_recv: 5 is not in the group of ranks 0-2"] = dist.SendRecv(one, 0, []int{1}, 5, 0)
			_, refusals["dist: batch_isend_irecv: operation 1 is empty: make it by dist.SendOp or dist.RecvOp"] =
				dist.BatchIsendIrecv([]dist.P2POp{dist.SendOp(one, 1, 0), {}})
			works, err := dist.BatchIsendIrecv([]dist.P2POp{dist.SendOp(one, 1, 0), dist.RecvOp(one, 1, 0)}, in)
			if err != nil {
				return err
			}
			refusals["ccl: send: the other rank is not in the group of ranks 0, 2"] = works[0].Wait(ctx)
			refusals["ccl: recv: the other rank is not in the group of ranks 0, 2"] = works[1].Wait(ctx)
			for text, err := range refusals {
				assert.ErrorContains(t, err, text)
				var invalid *dist.InvalidArgumentError
				assert.ErrorAs(t, err, &invalid, text)
			}
			_, err = dist.Irecv(one, 0, 0, dist.WithGroup(nil))
			assert.ErrorContains(t, err, "the process group is nil")
		}
		return dist.Barrier()
	}), dist.WithRanks(3))
	require.NoError(t, err)
}

// A receive without a message, and a message of another length.
func TestMessagesThatDoNotCome(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if rank == 0 {
			return errors.Join(dist.Send([]int{1, 2}, 1, 0), dist.Barrier())
		}
		var mismatch *dist.MismatchError
		_, err := dist.Recv(make([]int, 3), 0, 0)
		if assert.ErrorAs(t, err, &mismatch) {
			assert.Equal(t, "count", mismatch.Field)
		}
		tensor := make([]int, 2)
		if _, err := dist.Recv(tensor, 0, 0); err != nil {
			return err
		}
		assert.Equal(t, []int{1, 2}, tensor, "it is still there")

		var late *dist.TimeoutError
		_, err = dist.Recv(tensor, 0, 1, dist.WithCallTimeout(20*time.Millisecond))
		if assert.ErrorAs(t, err, &late) {
			assert.Equal(t, []int{0}, late.Behind)
		}
		return dist.Barrier()
	}), dist.WithRanks(2))
	require.NoError(t, err)
}
