package dist_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

// Every call that all ranks make compares keys: with another one on a rank it is a mismatch on all,
// with the same one it is made.
func TestKeys(t *testing.T) {
	x := func() []int32 { return make([]int32, 4) }
	wait := func(w *dist.Work, err error) error {
		if err != nil {
			return err
		}
		return w.Wait(context.Background())
	}
	for name, call := range map[string]func(key dist.CallOption) error{
		"all_reduce":       func(key dist.CallOption) error { return dist.AllReduce(x(), dist.Sum, key) },
		"all_reduce_async": func(key dist.CallOption) error { return wait(dist.AllReduceAsync(x(), dist.Sum, key)) },
		"coalesced":        func(key dist.CallOption) error { return dist.AllReduceCoalesced([][]int32{x(), x()}, dist.Sum, key) },
		"reduce":           func(key dist.CallOption) error { return dist.Reduce(x(), 0, dist.Sum, key) },
		"scan":             func(key dist.CallOption) error { return dist.Scan(x(), x(), dist.Sum, key) },
		"broadcast":        func(key dist.CallOption) error { return dist.Broadcast(x(), 1, key) },
		"all_gather":       func(key dist.CallOption) error { return dist.AllGather(x(), x()[:2], key) },
		"all_gather_v":     func(key dist.CallOption) error { return dist.AllGatherV(x(), x()[:2], []int{2, 2}, key) },
		"all_to_all":       func(key dist.CallOption) error { return dist.AllToAll(x(), x(), key) },
		"all_to_all_v":     func(key dist.CallOption) error { return dist.AllToAllV(x(), x(), []int{2, 2}, []int{2, 2}, key) },
		"reduce_scatter":   func(key dist.CallOption) error { return dist.ReduceScatter(x()[:2], x(), dist.Sum, key) },
		"barrier":          func(key dist.CallOption) error { return dist.Barrier(key) },
		"broadcast_object": func(key dist.CallOption) error { return dist.BroadcastObject(new("object"), 0, key) },
		"gather_object":    func(key dist.CallOption) error { _, err := dist.AllGatherObject("object", key); return err },
		"new_group":        func(key dist.CallOption) error { _, err := dist.NewGroup([]int{0, 1}, key); return err },
		"split":            func(key dist.CallOption) error { _, err := dist.Split(0, 0, key); return err },
		"new_subgroups":    func(key dist.CallOption) error { _, _, err := dist.NewSubgroups(1, key); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := spawn(t, initialised(func(_ context.Context, rank int) error {
				if err := call(dist.WithKey("both")); err != nil {
					return err
				}
				err := call(dist.WithKey([]string{"w", "b"}[rank]))
				assert.ErrorContains(t, err, `ranks disagree on key: "w" on rank 0; "b" on rank 1`)
				var mismatch *dist.MismatchError
				assert.ErrorAs(t, err, &mismatch)
				return nil
			}), dist.WithRanks(2))
			require.NoError(t, err)
		})
	}
}
