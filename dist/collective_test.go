package dist_test

import (
	"context"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type gradient float32 // named types are elements too

// Every function hands its arguments on in the right places.
func TestCollectives(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		sum := ranks * (ranks + 1) / 2
		err := spawn(t, initialised(func(ctx context.Context, rank int) error {
			mine := int64(rank + 1)
			product := int64(1)
			for r := range ranks {
				product *= int64(r + 1)
			}
			for _, c := range []struct {
				op   dist.ReduceOp
				want int64
			}{{dist.Sum, int64(sum)}, {dist.Avg, int64(sum / ranks)}, {dist.Product, product}, {dist.Min, 1}, {dist.Max, int64(ranks)}} {
				tensor := []int64{mine, -7}
				if err := dist.AllReduce(tensor, c.op); err != nil {
					return err
				}
				assert.Equal(t, c.want, tensor[0], "%v of %d ranks", c.op, ranks)
			}
			grads := []gradient{gradient(mine)}
			if err := dist.AllReduce(grads, dist.Sum); err != nil {
				return err
			}
			assert.Equal(t, []gradient{gradient(sum)}, grads)

			for root := range ranks {
				tensor := []uint8{uint8(rank), uint8(rank + 1)}
				if err := dist.Broadcast(tensor, root); err != nil {
					return err
				}
				assert.Equal(t, []uint8{uint8(root), uint8(root + 1)}, tensor)
			}

			var counts []int
			var input, want []float64
			for r := range ranks {
				counts = append(counts, r)
				for i := range r {
					want = append(want, float64(100*r+i))
				}
			}
			for i := range rank {
				input = append(input, float64(100*rank+i))
			}
			output := make([]float64, len(want))
			if err := dist.AllGatherV(output, input, counts); err != nil {
				return err
			}
			assert.Equal(t, append([]float64{}, want...), output)
			return dist.Barrier()
		}), dist.Ranks(ranks))
		require.NoError(t, err)
	}
}

// S4.13, S1.8, C2, C9: a call that every rank refuses leaves the group as it is,
// and refusals of dist count like those of ccl.
func TestRefusals(t *testing.T) {
	refusals := []struct {
		name string
		call func(rank int) error
		text string
		is   []error
		as   any
	}{
		{
			name: "nil tensor",
			call: func(int) error { return dist.AllReduce[float32](nil, dist.Sum) },
			text: "dist: all_reduce: tensor is not deployed: it is nil: ccl: all_reduce: send has 0 elements, want 1",
			is:   []error{dist.ErrNotDeployed},
			as:   &dist.InvalidBufferSizeError{Operation: "all_reduce", Buffer: "send", Expected: 1, Actual: 0},
		}, {
			name: "empty tensor",
			call: func(int) error { return dist.AllReduce([]float32{}, dist.Sum) },
			text: "dist: all_reduce: the tensor has no shards: ccl: all_reduce: send has 0 elements, want 1",
			as:   &dist.InvalidBufferSizeError{Operation: "all_reduce", Buffer: "send", Expected: 1, Actual: 0},
		}, {
			name: "nil on one rank, empty on the others",
			call: func(rank int) error { return dist.AllReduce(map[int][]float32{0: {}, 1: {}}[rank], dist.Sum) },
			text: "send has 0 elements, want 1",
		}, {
			name: "bitwise op",
			call: func(int) error { return dist.AllReduce([]int32{1}, dist.BXor) },
			text: "ccl: all_reduce: operation bxor is not implemented",
			is:   []error{dist.ErrNotImplemented},
		}, {
			name: "wrong root",
			call: func(int) error { return dist.Broadcast([]int32{1}, 3) },
			text: "ccl: root 3 is not a rank of a group of 3 (0 to 2)",
			as:   &dist.InvalidRootError{Root: 3, Size: 3},
		}, {
			name: "negative root",
			call: func(int) error { return dist.Broadcast([]int32{1}, -1) },
			text: "ccl: root -1 is not a rank of a group of 3 (0 to 2)",
			as:   &dist.InvalidRootError{Root: -1, Size: 3},
		}, {
			name: "counts of another group",
			call: func(int) error { return dist.AllGatherV(make([]int32, 2), make([]int32, 1), []int{1, 1}) },
			text: "ccl: all_gather: counts has 2 elements, want 3",
			as:   &dist.InvalidBufferSizeError{Operation: "all_gather", Buffer: "counts", Expected: 3, Actual: 2},
		}, {
			name: "output too short",
			call: func(int) error { return dist.AllGatherV(make([]int32, 2), make([]int32, 1), []int{1, 1, 1}) },
			text: "ccl: all_gather: recv has 2 elements, want 3",
			as:   &dist.InvalidBufferSizeError{Operation: "all_gather", Buffer: "recv", Expected: 3, Actual: 2},
		}, {
			name: "cancelled context",
			call: func(int) error {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				return dist.Barrier(dist.WithContext(ctx))
			},
			text: "cancelled before the call began: context canceled",
			is:   []error{context.Canceled},
		}, {
			name: "unknown algorithm",
			call: func(int) error { return dist.AllReduce([]int32{1}, dist.Sum, dist.WithCallAlgorithm("rign")) },
			text: "rign",
		},
	}
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		for _, r := range refusals {
			err := r.call(rank)
			assert.ErrorContains(t, err, r.text, r.name)
			for _, is := range r.is {
				assert.ErrorIs(t, err, is, r.name)
			}
			switch want := r.as.(type) {
			case *dist.InvalidBufferSizeError:
				var got *dist.InvalidBufferSizeError
				if assert.ErrorAs(t, err, &got, r.name) {
					assert.Equal(t, want, got, r.name)
				}
			case *dist.InvalidRootError:
				var got *dist.InvalidRootError
				if assert.ErrorAs(t, err, &got, r.name) {
					assert.Equal(t, want, got, r.name)
				}
			}
			tensor := []int32{1}
			if err := dist.AllReduce(tensor, dist.Sum); err != nil {
				return err
			}
			assert.Equal(t, []int32{3}, tensor, "the group is as it was")
		}
		return nil
	}), dist.Ranks(3))
	require.NoError(t, err)
}

// One rank that refuses alone is named to all the others.
func TestRefusalOfOneRank(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		tensor := []float32{1}
		if rank == 1 {
			tensor = nil
		}
		err := dist.AllReduce(tensor, dist.Sum)
		if rank == 1 {
			assert.ErrorIs(t, err, dist.ErrNotDeployed)
			err = dist.Barrier() // learns that it was alone with it
		}
		var mismatch *dist.MismatchError
		if assert.ErrorAs(t, err, &mismatch, "rank %d", rank) {
			assert.Equal(t, "arguments", mismatch.Field)
		}
		assert.ErrorContains(t, err, "refused on rank 1")

		err = dist.AllReduce[float32](nil, dist.Sum)
		assert.ErrorAs(t, err, &mismatch, "a group that has failed says why, whatever it is asked")
		assert.NotErrorIs(t, err, dist.ErrNotDeployed)
		return nil
	}), dist.Ranks(3))
	require.NoError(t, err)
}

// Collectives other than reductions accept length 0.
func TestLengthZero(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		assert.NoError(t, dist.Broadcast[float32](nil, 0))
		assert.NoError(t, dist.Broadcast([]float32{}, 1))
		assert.NoError(t, dist.AllGatherV[float32](nil, nil, []int{0, 0}))
		return nil
	}), dist.Ranks(2))
	require.NoError(t, err)
}

// The timeout of a call names who did not make it.
func TestCallTimeout(t *testing.T) {
	late := make(chan struct{})
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if rank == 1 {
			<-late
			return nil
		}
		defer close(late)
		err := dist.Barrier(dist.WithCallTimeout(30 * time.Millisecond))
		var timeout *dist.TimeoutError
		if assert.ErrorAs(t, err, &timeout) {
			assert.Equal(t, []int{1}, timeout.Missing)
		}
		return nil
	}), dist.Ranks(2))
	require.NoError(t, err)
}

// Options that say nothing leave everything as it is; the later one holds.
func TestCallOptions(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		done, cancel := context.WithCancel(ctx)
		cancel()
		tensor := []int32{1}
		err := dist.AllReduce(tensor, dist.Sum, dist.CallOption{}, dist.WithCallTimeout(0), dist.WithCallTimeout(-1),
			dist.WithCallAlgorithm(""), dist.WithContext(done), dist.WithContext(ctx),
			dist.WithCallAlgorithm("direct"), dist.WithCallAlgorithm("ring"), dist.WithCallTimeout(time.Minute))
		assert.Equal(t, []int32{2}, tensor)
		return err
	}), dist.Ranks(2))
	require.NoError(t, err)
}

func TestWithGroup(t *testing.T) {
	handles := make(chan *dist.ProcessGroup, 3)
	over := make(chan struct{})
	sums := make(chan []int64, 3)
	explicit := func() { // without any rank, for whoever asks
		group := <-handles
		rank, err := dist.GetRank(dist.WithGroup(group))
		assert.NoError(t, err)
		assert.Equal(t, group.Rank(), rank)
		size, err := dist.GetWorldSize(dist.WithGroup(group))
		assert.NoError(t, err)
		assert.Equal(t, 3, size)
		name, err := dist.GetBackend(dist.WithGroup(group))
		assert.NoError(t, err)
		assert.Equal(t, "ccl", name)
		global, err := group.GlobalRank(2)
		assert.NoError(t, err)
		assert.Equal(t, 2, global)
		_, err = group.GlobalRank(3)
		assert.EqualError(t, err, "ccl: global_rank: 3 is not a rank of a group of 3 (0 to 2)")

		sum := []int64{int64(rank)}
		assert.NoError(t, dist.AllReduce(sum, dist.Sum, dist.WithGroup(group)))
		assert.NoError(t, dist.Broadcast(sum, 1, dist.WithGroup(group)))
		assert.NoError(t, dist.AllGatherV(make([]int64, 3), []int64{1}, []int{1, 1, 1}, dist.WithGroup(group)))
		assert.NoError(t, dist.Barrier(dist.WithGroup(group)))
		assert.NoError(t, ccl.AllReduce(t.Context(), group.Communicator(), sum, sum, ccl.Max))
		sums <- sum
		<-over
		assert.ErrorIs(t, dist.Barrier(dist.WithGroup(group)), dist.ErrNotInitialized)
		assert.ErrorIs(t, dist.Barrier(dist.WithGroup(group)), dist.ErrClosed)
		assert.Equal(t, rank, group.Rank(), "a group that is gone still says what it was")
		sums <- nil
	}
	for range 3 {
		go explicit()
	}
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		group, err := dist.Default()
		handles <- group
		assert.Equal(t, []int64{3}, <-sums)

		const text = "ccl: with_group: the process group is nil: pass one from dist.Default"
		assert.EqualError(t, dist.Barrier(dist.WithGroup(nil)), text)
		_, rankErr := dist.GetRank(dist.WithGroup(nil))
		assert.EqualError(t, rankErr, text)
		return err
	}), dist.Ranks(3))
	close(over)
	require.NoError(t, err)
	for range 3 {
		<-sums
	}
}
