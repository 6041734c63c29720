package dist_test

import (
	"context"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every Async form has the results of its function with the same arguments.
func TestAsyncTwins(t *testing.T) {
	const ranks = 3
	counts := []int{1, 0, 2}
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		// Only the root of gathers and scatters passes these.
		at := func(root, n int) []int64 {
			if rank == root {
				return elements(rank, n)
			}
			return nil
		}
		known := func(root int) []int {
			if rank == root {
				return counts
			}
			return nil
		}
		in := elements(rank, ranks)
		mine := elements(rank, counts[rank])
		for _, twins := range []struct {
			name   string
			output int // length of the output, or of the only tensor
			call   func(output []int64) error
			start  func(output []int64) (*dist.Work, error)
		}{
			{"AllReduce", 3,
				func(o []int64) error { return dist.AllReduce(o, dist.Max) },
				func(o []int64) (*dist.Work, error) { return dist.AllReduceAsync(o, dist.Max) }},
			{"AllReduceCoalesced", 3,
				func(o []int64) error { return dist.AllReduceCoalesced([][]int64{o[:1], o[1:]}, dist.Max) },
				func(o []int64) (*dist.Work, error) {
					return dist.AllReduceCoalescedAsync([][]int64{o[:1], o[1:]}, dist.Max)
				}},
			{"Reduce", 3,
				func(o []int64) error { return dist.Reduce(o, 1, dist.Sum) },
				func(o []int64) (*dist.Work, error) { return dist.ReduceAsync(o, 1, dist.Sum) }},
			{"ReduceScatter", 1,
				func(o []int64) error { return dist.ReduceScatter(o, in, dist.Max) },
				func(o []int64) (*dist.Work, error) { return dist.ReduceScatterAsync(o, in, dist.Max) }},
			{"ReduceScatterV", counts[rank],
				func(o []int64) error { return dist.ReduceScatterV(o, in, dist.Max, counts) },
				func(o []int64) (*dist.Work, error) { return dist.ReduceScatterVAsync(o, in, dist.Max, counts) }},
			{"Scan", ranks,
				func(o []int64) error { return dist.Scan(o, in, dist.Sum) },
				func(o []int64) (*dist.Work, error) { return dist.ScanAsync(o, in, dist.Sum) }},
			{"ExScan", ranks,
				func(o []int64) error { return dist.ExScan(o, in, dist.Sum) },
				func(o []int64) (*dist.Work, error) { return dist.ExScanAsync(o, in, dist.Sum) }},
			{"Broadcast", 2,
				func(o []int64) error { return dist.Broadcast(o, 1) },
				func(o []int64) (*dist.Work, error) { return dist.BroadcastAsync(o, 1) }},
			{"AllGather", ranks * ranks,
				func(o []int64) error { return dist.AllGather(o, in) },
				func(o []int64) (*dist.Work, error) { return dist.AllGatherAsync(o, in) }},
			{"AllGatherV", ranks,
				func(o []int64) error { return dist.AllGatherV(o, mine, counts) },
				func(o []int64) (*dist.Work, error) { return dist.AllGatherVAsync(o, mine, counts) }},
			{"Gather", len(at(2, ranks)),
				func(o []int64) error { return dist.Gather(o, in[:1], 2) },
				func(o []int64) (*dist.Work, error) { return dist.GatherAsync(o, in[:1], 2) }},
			{"GatherV", len(at(2, ranks)),
				func(o []int64) error { return dist.GatherV(o, mine, known(2), 2) },
				func(o []int64) (*dist.Work, error) { return dist.GatherVAsync(o, mine, known(2), 2) }},
			{"Scatter", 1,
				func(o []int64) error { return dist.Scatter(o, at(2, ranks), 2) },
				func(o []int64) (*dist.Work, error) { return dist.ScatterAsync(o, at(2, ranks), 2) }},
			{"ScatterV", counts[rank],
				func(o []int64) error { return dist.ScatterV(o, at(2, ranks), known(2), 2) },
				func(o []int64) (*dist.Work, error) { return dist.ScatterVAsync(o, at(2, ranks), known(2), 2) }},
			{"AllToAll", ranks,
				func(o []int64) error { return dist.AllToAll(o, in) },
				func(o []int64) (*dist.Work, error) { return dist.AllToAllAsync(o, in) }},
			{"AllToAllV", ranks * counts[rank], // all ranks send counts[r] elements to rank r
				func(o []int64) error {
					return dist.AllToAllV(o, in, []int{counts[rank], counts[rank], counts[rank]}, counts)
				},
				func(o []int64) (*dist.Work, error) {
					return dist.AllToAllVAsync(o, in, []int{counts[rank], counts[rank], counts[rank]}, counts)
				}},
		} {
			want, got := elements(rank, twins.output), elements(rank, twins.output)
			if err := twins.call(want); err != nil {
				return err
			}
			work, err := twins.start(got)
			if err != nil {
				return err
			}
			if err := work.Wait(ctx); err != nil {
				return err
			}
			assert.Equal(t, want, got, twins.name)
		}
		work, err := dist.BarrierAsync()
		if err != nil {
			return err
		}
		<-work.Done()
		return work.Err()
	}), dist.WithRanks(ranks))
	require.NoError(t, err)
}

// Many calls may be queued, and a synchronous call waits for them. Invalid arguments are
// the error of the Work.
func TestAsync(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		wrong, err := dist.BroadcastAsync([]int64{1}, 7)
		if err != nil {
			return err
		}
		tensor := []int64{1}
		for range 10 {
			if _, err := dist.AllReduceAsync(tensor, dist.Sum); err != nil {
				return err
			}
		}
		if err := dist.Barrier(); err != nil {
			return err
		}
		assert.Equal(t, []int64{1024}, tensor)
		var root *dist.InvalidRootError
		if assert.ErrorAs(t, wrong.Err(), &root) {
			assert.Equal(t, 7, root.Root)
		}
		return nil
	}), dist.WithRanks(2))
	require.NoError(t, err)

	var group *dist.ProcessGroup
	work, err := dist.AllReduceAsync([]int64{1}, dist.Sum, dist.WithGroup(group))
	require.Nil(t, work)
	require.ErrorContains(t, err, "the process group is nil")
}

// Tensors of different lengths, one of them empty, and a length that differs on one rank.
func TestCoalesced(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		tensors := [][]int64{elements(rank, 3), {}, elements(rank, 70_000)}
		if err := dist.AllReduceCoalesced(tensors, dist.Sum); err != nil {
			return err
		}
		assert.Equal(t, [][]int64{sums(2, 0, 3), {}, sums(2, 0, 70_000)}, tensors)

		err := dist.AllReduceCoalesced([][]int64{elements(rank, 2+rank), elements(rank, 4-rank)}, dist.Sum)
		var mismatch *dist.MismatchError
		assert.ErrorAs(t, err, &mismatch, "as many elements in all")
		return nil
	}), dist.WithRanks(3))
	require.NoError(t, err)
}
