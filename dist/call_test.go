package dist_test

import (
	"context"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A call that all ranks reject leaves the group intact, and consumes a number whether dist
// or ccl rejects it.
func TestRefusals(t *testing.T) {
	texts := golden.Errors(t)
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
			text: "dist: all_reduce: the tensor is nil: tensor has 0 elements, want 1 or more",
			is:   []error{dist.ErrNotDeployed},
			as:   &dist.InvalidBufferSizeError{Operation: "all_reduce", Buffer: "tensor", Expected: 1, Actual: 0, OrMore: true},
		}, {
			name: "empty tensor",
			call: func(int) error { return dist.AllReduce([]float32{}, dist.Sum) },
			text: "ccl: all_reduce: tensor has 0 elements, want 1 or more",
			as:   &dist.InvalidBufferSizeError{Operation: "all_reduce", Buffer: "tensor", Expected: 1, Actual: 0, OrMore: true},
		}, {
			name: "nil on one rank, empty on the others",
			call: func(rank int) error { return dist.AllReduce(map[int][]float32{0: {}, 1: {}}[rank], dist.Sum) },
			text: "tensor has 0 elements, want 1 or more",
		}, {
			name: "bits of floats",
			call: func(int) error { return dist.AllReduce([]float32{1}, dist.BXor) },
			text: "ccl: all_reduce: operation bxor of float32 is not implemented: only integers and bools have it",
			is:   []error{dist.ErrNotImplemented},
		}, {
			name: "nil to reduce",
			call: func(int) error { return dist.Reduce[float32](nil, 1, dist.Sum) },
			text: "dist: reduce: the tensor is nil: tensor has 0 elements, want 1 or more",
			is:   []error{dist.ErrNotDeployed},
		}, {
			name: "nil to reduce and scatter",
			call: func(int) error { return dist.ReduceScatter(make([]float32, 1), nil, dist.Sum) },
			text: "dist: reduce_scatter: the tensor is nil: input has 0 elements, want 3",
			is:   []error{dist.ErrNotDeployed},
		}, {
			name: "mean of how many",
			call: func(int) error { return dist.Scan(make([]float32, 1), make([]float32, 1), dist.Avg) },
			text: "ccl: scan: operation avg is not implemented",
			is:   []error{dist.ErrNotImplemented},
		}, {
			name: "output of another length",
			call: func(int) error { return dist.AllGather(make([]int32, 4), make([]int32, 1)) },
			text: "ccl: all_gather: output has 4 elements, want 3",
			as:   &dist.InvalidBufferSizeError{Operation: "all_gather", Buffer: "output", Expected: 3, Actual: 4},
		}, {
			name: "gather to whom",
			call: func(int) error { return dist.Gather(make([]int32, 3), make([]int32, 1), 7) },
			text: "ccl: gather: root 7 is not a rank of a group of 3 (0 to 2)",
			as:   &dist.InvalidRootError{Root: 7, Size: 3},
		}, {
			name: "gather of other lengths to whom",
			call: func(int) error { return dist.GatherV(nil, make([]int32, 1), nil, 3) },
			text: "ccl: gather_v: root 3 is not a rank of a group of 3 (0 to 2)",
			as:   &dist.InvalidRootError{Root: 3, Size: 3},
		}, {
			name: "scatter from whom",
			call: func(int) error { return dist.ScatterV(make([]int32, 1), nil, nil, 3) },
			text: "ccl: scatter_v: root 3 is not a rank of a group of 3 (0 to 2)",
			as:   &dist.InvalidRootError{Root: 3, Size: 3},
		}, {
			name: "reduce to whom",
			call: func(int) error { return dist.Reduce([]int32{1}, -7, dist.Sum) },
			text: "ccl: reduce: root -7 is not a rank of a group of 3 (0 to 2)",
			as:   &dist.InvalidRootError{Root: -7, Size: 3},
		}, {
			name: "outputs at the wrong side, and none at the right one",
			call: func(rank int) error {
				output := make([]int32, 3)
				if rank == 1 {
					output = nil
				}
				return dist.Gather(output, make([]int32, 1), 1)
			},
			text: "ccl: gather: output has ",
		}, {
			name: "inputs at the wrong side, and none at the right one",
			call: func(rank int) error {
				input := make([]int32, 3)
				if rank == 1 {
					input = nil
				}
				return dist.Scatter(make([]int32, 1), input, 1)
			},
			text: "ccl: scatter: ",
		}, {
			name: "lengths that the root has wrong",
			call: func(rank int) error {
				var output []int32
				var counts []int
				if rank == 1 {
					output, counts = make([]int32, 4), []int{2, 1, 1}
				}
				return dist.GatherV(output, make([]int32, 1), counts, 1)
			},
			text: "ranks disagree on counts",
		}, {
			name: "lengths that two ranks see differently",
			call: func(rank int) error {
				expected := []int{1, 1, 1}
				if rank == 2 {
					expected[0] = 2
				}
				return dist.AllToAllV(make([]int32, 4), make([]int32, 3), expected, []int{1, 1, 1})
			},
			text: "rank 0 sends 1 elements to rank 2 on rank 0; rank 2 expects 2 from rank 0 on rank 2",
		}, {
			name: "what cannot be divided",
			call: func(int) error { return dist.AllToAll(make([]int32, 4), make([]int32, 4)) },
			text: "ccl: all_to_all: 4 elements cannot be dealt out evenly to 3 ranks",
		}, {
			name: "wrong root",
			call: func(int) error { return dist.Broadcast([]int32{1}, 3) },
			text: "ccl: broadcast: root 3 is not a rank of a group of 3 (0 to 2)",
			as:   &dist.InvalidRootError{Root: 3, Size: 3},
		}, {
			name: "negative root",
			call: func(int) error { return dist.Broadcast([]int32{1}, -1) },
			text: "ccl: broadcast: root -1 is not a rank of a group of 3 (0 to 2)",
			as:   &dist.InvalidRootError{Root: -1, Size: 3},
		}, {
			name: "counts of another group",
			call: func(int) error { return dist.AllGatherV(make([]int32, 2), make([]int32, 1), []int{1, 1}) },
			text: "ccl: all_gather: counts has 2 elements, want 3",
			as:   &dist.InvalidBufferSizeError{Operation: "all_gather", Buffer: "counts", Expected: 3, Actual: 2},
		}, {
			name: "output too short",
			call: func(int) error { return dist.AllGatherV(make([]int32, 2), make([]int32, 1), []int{1, 1, 1}) },
			text: "ccl: all_gather: output has 2 elements, want 3 or more",
			as:   &dist.InvalidBufferSizeError{Operation: "all_gather", Buffer: "output", Expected: 3, Actual: 2, OrMore: true},
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
			texts.Add(r.name, err)
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
	}), dist.WithRanks(3))
	require.NoError(t, err)
}

// If one rank rejects a call, the other ranks' errors name it.
func TestRefusalOfOneRank(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		tensor := []float32{1}
		if rank == 1 {
			tensor = nil
		}
		err := dist.AllReduce(tensor, dist.Sum)
		if rank == 1 {
			assert.ErrorIs(t, err, dist.ErrNotDeployed)
			err = dist.Barrier() // returns the error of the call that only this rank rejected
		}
		var mismatch *dist.MismatchError
		if assert.ErrorAs(t, err, &mismatch, "rank %d", rank) {
			assert.Equal(t, "arguments", mismatch.Field)
		}
		assert.ErrorContains(t, err, "rejected on rank 1 (ccl: all_reduce: tensor has 0 elements, want 1 or more)")

		err = dist.AllReduce[float32](nil, dist.Sum)
		assert.ErrorAs(t, err, &mismatch, "a group that has failed says why, whatever it is asked,")
		assert.ErrorIs(t, err, dist.ErrNotDeployed, "and hides no mistake of the rank's own")
		return nil
	}), dist.WithRanks(3))
	require.NoError(t, err)
}

// Collectives other than reductions accept length 0.
func TestLengthZero(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		assert.NoError(t, dist.Broadcast[float32](nil, 0))
		assert.NoError(t, dist.Broadcast([]float32{}, 1))
		assert.NoError(t, dist.AllGatherV[float32](nil, nil, []int{0, 0}))
		assert.NoError(t, dist.AllGather[float32](nil, nil))
		assert.NoError(t, dist.Gather[float32](nil, nil, 1))
		assert.NoError(t, dist.Scatter[float32](nil, nil, 1))
		assert.NoError(t, dist.AllToAll[float32](nil, nil))
		assert.NoError(t, dist.AllToAllV[float32](nil, nil, []int{0, 0}, []int{0, 0}))
		return nil
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// The error of a call's timeout names the ranks that did not make the call.
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
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// Zero options change nothing; later options override earlier ones.
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
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

func TestWithGroup(t *testing.T) {
	handles := make(chan *dist.ProcessGroup, 3)
	over := make(chan struct{})
	sums := make(chan []int64, 3)
	explicit := func() { // without a rank, in any goroutine
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
		assert.EqualError(t, err, "dist: global_rank: 3 is not a rank of a group of 3 (0 to 2)")

		local, err := group.GroupRank(2)
		assert.NoError(t, err)
		assert.Equal(t, 2, local)
		_, err = group.GroupRank(-1)
		assert.EqualError(t, err, "dist: group_rank: -1 is not in the group of ranks 0-2")

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
		assert.Regexp(t, `^dist: the process group that dist.WithGroup names was destroyed; make another \(at \S+\)$`, dist.Barrier(dist.WithGroup(group)).Error())
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

		const text = "dist: with_group: the process group is nil: pass that of dist.Default, or call only on ranks for which dist.NewGroup returned a group"
		assert.EqualError(t, reason(t, dist.Barrier(dist.WithGroup(nil))), text)
		_, rankErr := dist.GetRank(dist.WithGroup(nil))
		assert.EqualError(t, rankErr, text)
		return err
	}), dist.WithRanks(3))
	close(over)
	require.NoError(t, err)
	for range 3 {
		<-sums
	}
}
