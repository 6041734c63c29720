package dist_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

// The nil that NewGroup returns to a rank that is no member has no ranks, and each of its methods
// that returns an error returns that of WithGroup. So does the zero value.
func TestMethodsOfNoGroup(t *testing.T) {
	err := spawn(t, initialised(func(_ context.Context, rank int) error {
		outside, err := dist.NewGroup([]int{0})
		if err != nil || rank == 0 {
			return err
		}
		for name, g := range map[string]*dist.ProcessGroup{"nil": outside, "zero": {}} {
			assert.Equal(t, []int{-1, -1}, []int{g.Rank(), g.Size()}, name)
			assert.Nil(t, g.Ranks(), name)
			assert.Nil(t, g.Communicator(), name)
			assert.ErrorIs(t, g.Communicator().Barrier(t.Context()), ccl.ErrInvalidCommunicator, name)
			v := reflect.ValueOf(g)
			for i := range v.NumMethod() {
				method := v.Type().Method(i)
				var args []reflect.Value
				for n := range method.Type.NumIn() - 1 {
					args = append(args, reflect.Zero(method.Type.In(n+1)))
				}
				out := v.Method(i).Call(args)
				if last := out[len(out)-1]; last.Type() == reflect.TypeFor[error]() {
					err, _ := last.Interface().(error)
					var invalid *dist.InvalidArgumentError
					assert.ErrorAs(t, err, &invalid, "%s: %s", name, method.Name)
					assert.ErrorContains(t, err, "the process group is nil", "%s: %s", name, method.Name)
				}
			}
			assert.ErrorContains(t, reason(t, dist.Barrier(dist.WithGroup(g))), "the process group is nil", name)
			assert.ErrorContains(t, dist.DestroyProcessGroup(dist.WithGroup(g)), "the process group is nil", name)
		}
		return nil
	}), dist.WithRanks(2))
	require.NoError(t, err)
}

// No function takes a nil group for the default group, or panics: each returns the error of
// WithGroup.
func TestFunctionsOfNoGroup(t *testing.T) {
	x, y, n := []int32{1}, []int32{2}, []int{1}
	no := dist.WithGroup(nil)
	work := func(_ any, err error) error { return err }
	err := spawn(t, initialised(func(context.Context, int) error {
		for name, call := range map[string]func() error{
			"AllReduce":                 func() error { return dist.AllReduce(x, dist.Sum, no) },
			"AllReduceCoalesced":        func() error { return dist.AllReduceCoalesced([][]int32{x}, dist.Sum, no) },
			"Reduce":                    func() error { return dist.Reduce(x, 0, dist.Sum, no) },
			"ReduceScatter":             func() error { return dist.ReduceScatter(x, y, dist.Sum, no) },
			"ReduceScatterV":            func() error { return dist.ReduceScatterV(x, y, dist.Sum, n, no) },
			"Scan":                      func() error { return dist.Scan(x, y, dist.Sum, no) },
			"ExScan":                    func() error { return dist.ExScan(x, y, dist.Sum, no) },
			"Broadcast":                 func() error { return dist.Broadcast(x, 0, no) },
			"AllGather":                 func() error { return dist.AllGather(x, y, no) },
			"AllGatherV":                func() error { return dist.AllGatherV(x, y, n, no) },
			"Gather":                    func() error { return dist.Gather(x, y, 0, no) },
			"GatherV":                   func() error { return dist.GatherV(x, y, n, 0, no) },
			"Scatter":                   func() error { return dist.Scatter(x, y, 0, no) },
			"ScatterV":                  func() error { return dist.ScatterV(x, y, n, 0, no) },
			"AllToAll":                  func() error { return dist.AllToAll(x, y, no) },
			"AllToAllV":                 func() error { return dist.AllToAllV(x, y, n, n, no) },
			"Barrier":                   func() error { return dist.Barrier(no) },
			"MonitoredBarrier":          func() error { return dist.MonitoredBarrier(0, no) },
			"AllReduceAsync":            func() error { return work(dist.AllReduceAsync(x, dist.Sum, no)) },
			"BroadcastAsync":            func() error { return work(dist.BroadcastAsync(x, 0, no)) },
			"BarrierAsync":              func() error { return work(dist.BarrierAsync(no)) },
			"BroadcastObject":           func() error { return dist.BroadcastObject(&x, 0, no) },
			"AllGatherObject":           func() error { return work(dist.AllGatherObject(x, no)) },
			"GatherObject":              func() error { return work(dist.GatherObject(x, 0, no)) },
			"ScatterObject":             func() error { return work(dist.ScatterObject([]int{1}, 0, no)) },
			"AllToAllObject":            func() error { return work(dist.AllToAllObject([]int{1}, no)) },
			"SendObject":                func() error { return dist.SendObject(x, 0, 0, no) },
			"RecvObject":                func() error { _, _, err := dist.RecvObject[int](0, 0, no); return err },
			"Send":                      func() error { return dist.Send(x, 0, 0, no) },
			"Recv":                      func() error { return work(dist.Recv(x, 0, 0, no)) },
			"SendRecv":                  func() error { return work(dist.SendRecv(x, 0, y, 0, 0, no)) },
			"Isend":                     func() error { return work(dist.Isend(x, 0, 0, no)) },
			"Irecv":                     func() error { return work(dist.Irecv(x, 0, 0, no)) },
			"BatchIsendIrecv":           func() error { return work(dist.BatchIsendIrecv([]dist.P2POp{dist.SendOp(x, 0, 0)}, no)) },
			"NewGroup":                  func() error { return work(dist.NewGroup(nil, no)) },
			"NewSubgroups":              func() error { _, _, err := dist.NewSubgroups(1, no); return err },
			"NewSubgroupsByEnumeration": func() error { _, _, err := dist.NewSubgroupsByEnumeration([][]int{{0}}, no); return err },
			"Split":                     func() error { return work(dist.Split(0, 0, no)) },
			"GetRank":                   func() error { return work(dist.GetRank(no)) },
			"GetWorldSize":              func() error { return work(dist.GetWorldSize(no)) },
			"GetBackend":                func() error { return work(dist.GetBackend(no)) },
			"DestroyProcessGroup":       func() error { return dist.DestroyProcessGroup(no) },
		} {
			var invalid *dist.InvalidArgumentError
			err := call()
			assert.ErrorAs(t, err, &invalid, name)
			assert.ErrorContains(t, err, "the process group is nil", name)
		}
		return dist.Barrier()
	}), dist.WithRanks(1))
	require.NoError(t, err)
}
