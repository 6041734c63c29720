package dist_test

import (
	"context"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An error about a buffer calls it by the name that it has in the signature of the function
// that was called, also if the call is asynchronous.
func TestErrorsNameArguments(t *testing.T) {
	texts := golden.Errors(t)
	one, two, three := make([]int32, 1), make([]int32, 2), make([]int32, 3)
	none, ones, same := []int32{}, []int{1, 1}, make([]int32, 4)
	for _, c := range []struct {
		text  string
		call  func() error
		async func() (*dist.Work, error)
	}{
		{
			"ccl: all_reduce: tensor has 0 elements, want 1 or more",
			func() error { return dist.AllReduce(none, dist.Sum) },
			func() (*dist.Work, error) { return dist.AllReduceAsync(none, dist.Sum) },
		}, {
			"ccl: all_reduce_coalesced: tensors has 0 elements, want 1 or more",
			func() error { return dist.AllReduceCoalesced([][]int32{}, dist.Sum) },
			func() (*dist.Work, error) { return dist.AllReduceCoalescedAsync([][]int32{}, dist.Sum) },
		}, {
			"ccl: reduce: tensor has 0 elements, want 1 or more",
			func() error { return dist.Reduce(none, 1, dist.Sum) },
			func() (*dist.Work, error) { return dist.ReduceAsync(none, 1, dist.Sum) },
		}, {
			"ccl: reduce_scatter: input has 3 elements, want 2",
			func() error { return dist.ReduceScatter(one, three, dist.Sum) },
			func() (*dist.Work, error) { return dist.ReduceScatterAsync(one, three, dist.Sum) },
		}, {
			"ccl: reduce_scatter: output overlaps input, but is not this rank's block of it",
			func() error { return dist.ReduceScatter(same[1:3], same, dist.Sum) },
			func() (*dist.Work, error) { return dist.ReduceScatterAsync(same[1:3], same, dist.Sum) },
		}, {
			"ccl: reduce_scatter: output has 2 elements, want 1",
			func() error { return dist.ReduceScatterV(two, two, dist.Sum, ones) },
			func() (*dist.Work, error) { return dist.ReduceScatterVAsync(two, two, dist.Sum, ones) },
		}, {
			"ccl: scan: output has 1 elements, want 2",
			func() error { return dist.Scan(one, two, dist.Sum) },
			func() (*dist.Work, error) { return dist.ScanAsync(one, two, dist.Sum) },
		}, {
			"ccl: exscan: input and output overlap; they must be the same slice or disjoint",
			func() error { return dist.ExScan(same[:3], same[1:], dist.Sum) },
			func() (*dist.Work, error) { return dist.ExScanAsync(same[:3], same[1:], dist.Sum) },
		}, {
			"ccl: exscan: input has 0 elements, want 1 or more",
			func() error { return dist.ExScan(none, none, dist.Sum) },
			func() (*dist.Work, error) { return dist.ExScanAsync(none, none, dist.Sum) },
		}, {
			"ccl: all_gather: output has 3 elements, want 2",
			func() error { return dist.AllGather(three, one) },
			func() (*dist.Work, error) { return dist.AllGatherAsync(three, one) },
		}, {
			"ccl: all_gather: input has 2 elements, want 1",
			func() error { return dist.AllGatherV(three, two, ones) },
			func() (*dist.Work, error) { return dist.AllGatherVAsync(three, two, ones) },
		}, {
			"ccl: all_gather: input overlaps output, but is not this rank's block of it",
			func() error { return dist.AllGather(same, same[1:3]) },
			func() (*dist.Work, error) { return dist.AllGatherAsync(same, same[1:3]) },
		}, {
			"ccl: all_gather: counts has 1 elements, want 2",
			func() error { return dist.AllGatherV(three, one, ones[:1]) },
			func() (*dist.Work, error) { return dist.AllGatherVAsync(three, one, ones[:1]) },
		}, {
			"ccl: all_to_all: output has 4 elements, want 2",
			func() error { return dist.AllToAll(same, two) },
			func() (*dist.Work, error) { return dist.AllToAllAsync(same, two) },
		}, {
			"ccl: all_to_all: input and output overlap; they must be disjoint",
			func() error { return dist.AllToAll(same[:2], same[1:3]) },
			func() (*dist.Work, error) { return dist.AllToAllAsync(same[:2], same[1:3]) },
		}, {
			"ccl: all_to_all_v: inputCounts has 1 elements, want 2",
			func() error { return dist.AllToAllV(two, two, ones, ones[:1]) },
			func() (*dist.Work, error) { return dist.AllToAllVAsync(two, two, ones, ones[:1]) },
		}, {
			"ccl: all_to_all_v: outputCounts[1] is -1, and must not be negative",
			func() error { return dist.AllToAllV(two, two, []int{1, -1}, ones) },
			func() (*dist.Work, error) { return dist.AllToAllVAsync(two, two, []int{1, -1}, ones) },
		}, {
			"ccl: all_to_all_v: input has 1 elements, want 2 or more",
			func() error { return dist.AllToAllV(two, one, ones, ones) },
			func() (*dist.Work, error) { return dist.AllToAllVAsync(two, one, ones, ones) },
		}, {
			"ccl: all_to_all_v: input and output overlap; they must be disjoint",
			func() error { return dist.AllToAllV(same[:2], same[1:3], ones, ones) },
			func() (*dist.Work, error) { return dist.AllToAllVAsync(same[:2], same[1:3], ones, ones) },
		},
	} {
		err := spawn(t, initialised(func(context.Context, int) error {
			err := c.call()
			texts.Add(c.text, err)
			assert.EqualError(t, reason(t, err), c.text)
			w, err := c.async()
			if err != nil {
				return err
			}
			err = w.Wait(context.Background())
			texts.Add(c.text+", asynchronous", err)
			assert.EqualError(t, reason(t, err), c.text)
			return nil
		}), dist.WithRanks(2))
		require.NoError(t, err, c.text)
	}
}

// Which buffer of a gather or scatter is wrong depends on the rank.
func TestErrorsNameArgumentsOfTheRoot(t *testing.T) {
	texts := golden.Errors(t)
	one, two, three := make([]int32, 1), make([]int32, 2), make([]int32, 3)
	for _, c := range []struct {
		root, other string
		call        func(rank int) error
		async       func(rank int) (*dist.Work, error)
	}{
		{
			"ccl: gather: output has 3 elements, want 2", "ccl: gather: output has 3 elements, want 0",
			func(int) error { return dist.Gather(three, one, 0) },
			func(int) (*dist.Work, error) { return dist.GatherAsync(three, one, 0) },
		}, {
			"ccl: gather_v: input has 2 elements, want 1", "ccl: gather_v: counts has 2 elements, want 0",
			func(rank int) error { return dist.GatherV(three[3*rank:], two, []int{1, 1}, 0) },
			func(rank int) (*dist.Work, error) { return dist.GatherVAsync(three[3*rank:], two, []int{1, 1}, 0) },
		}, {
			"ccl: scatter: input has 3 elements, want 2", "ccl: scatter: input has 3 elements, want 0",
			func(int) error { return dist.Scatter(one, three, 0) },
			func(int) (*dist.Work, error) { return dist.ScatterAsync(one, three, 0) },
		}, {
			"ccl: scatter_v: output has 2 elements, want 1", "ccl: scatter_v: input has 3 elements, want 0",
			func(int) error { return dist.ScatterV(two, three, []int{1, 1}, 0) },
			func(int) (*dist.Work, error) { return dist.ScatterVAsync(two, three, []int{1, 1}, 0) },
		},
	} {
		err := spawn(t, initialised(func(_ context.Context, rank int) error {
			text := []string{c.root, c.other}[rank]
			err := c.call(rank)
			texts.Add(text, err)
			assert.EqualError(t, reason(t, err), text)
			w, err := c.async(rank)
			if err != nil {
				return err
			}
			assert.EqualError(t, reason(t, w.Wait(context.Background())), text)
			return nil
		}), dist.WithRanks(2))
		require.NoError(t, err, c.root)
	}
}

func TestErrorsNameArgumentsOfSendRecv(t *testing.T) {
	err := spawn(t, initialised(func(_ context.Context, rank int) error {
		buffer := make([]int32, 3)
		_, err := dist.SendRecv(buffer[:2], 1-rank, buffer[1:], 1-rank, 0)
		assert.EqualError(t, reason(t, err), "ccl: send_recv: input and output overlap; they must be disjoint")
		return nil
	}), dist.WithRanks(2))
	require.NoError(t, err)
}
