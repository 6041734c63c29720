package ccl_test

import (
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

var errorType = reflect.TypeFor[error]()

// callMethod calls a method with the context bg, an error, and zeros in place of the other
// arguments.
func callMethod(m reflect.Value) []reflect.Value {
	var args []reflect.Value
	for i := range m.Type().NumIn() {
		switch in := m.Type().In(i); {
		case m.Type().IsVariadic() && i == m.Type().NumIn()-1:
		case in == errorType:
			args = append(args, reflect.ValueOf(errors.New("refused")))
		case in == reflect.TypeFor[io.Writer]():
			args = append(args, reflect.ValueOf(io.Discard))
		case in.Kind() == reflect.Interface:
			args = append(args, reflect.ValueOf(bg))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	return m.Call(args)
}

// No method of a nil communicator, which Split returns to a rank without a color, panics; those
// that return an error return ErrInvalidCommunicator.
func TestMethodsOfNilCommunicator(t *testing.T) {
	v := reflect.ValueOf((*ccl.Communicator)(nil))
	for i := range v.NumMethod() {
		method := v.Type().Method(i).Name
		t.Run(method, func(t *testing.T) {
			out := callMethod(v.Method(i))
			if len(out) == 0 || method == "WriteFlight" || method == "WriteMetrics" { // whose doc comments except them
				return
			}
			switch last := out[len(out)-1]; {
			case last.Type() == errorType:
				err, _ := last.Interface().(error)
				require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
			case last.Type() == reflect.TypeFor[*ccl.Work]():
				require.ErrorIs(t, last.Interface().(*ccl.Work).Wait(bg), ccl.ErrInvalidCommunicator)
			}
		})
	}
}

// A nil communicator has no ranks, and no rank in the first group.
func TestNilCommunicatorHasNoRanks(t *testing.T) {
	var c *ccl.Communicator
	require.Equal(t, []int{-1, -1, -1}, []int{c.Rank(), c.Size(), c.GlobalRank(0)})
	require.Equal(t, []int{-1, -1}, []int{c.SplitLocal().Rank(), c.SplitLocal().Size()})
	require.False(t, c.IsLeader())
	require.Empty(t, c.Name()+c.Transport())
}

// No function that takes a communicator panics if it is nil or zero; each returns
// ErrInvalidCommunicator.
func TestFunctionsOfUnmadeCommunicator(t *testing.T) {
	x, y, n := make([]int32, 2), make([]int32, 2), []int{2}
	for name, c := range map[string]*ccl.Communicator{"nil": nil, "zero": {}} {
		for call, err := range map[string]func() error{
			"Alloc":              func() error { _, err := ccl.Alloc[int32](bg, c, 2); return err },
			"CreateSharedRegion": func() error { _, err := ccl.CreateSharedRegion[int32](bg, c, 2); return err },
			"WithWork":           func() error { return repeat(c, x, x, ccl.Sum)(bg).Wait(bg) },
			"AllReduce":          func() error { return ccl.AllReduce(bg, c, x, x, ccl.Sum) },
			"AllReduceCoalesced": func() error { return ccl.AllReduceCoalesced(bg, c, [][]int32{x}, ccl.Sum) },
			"Reduce":             func() error { return ccl.Reduce(bg, c, x, x, ccl.Sum, 0) },
			"Scan":               func() error { return ccl.Scan(bg, c, x, x, ccl.Sum) },
			"ExScan":             func() error { return ccl.ExScan(bg, c, x, x, ccl.Sum) },
			"ReduceScatter":      func() error { return ccl.ReduceScatter(bg, c, x, x, ccl.Sum) },
			"ReduceScatterV":     func() error { return ccl.ReduceScatterV(bg, c, x, x, ccl.Sum, n) },
			"AllGather":          func() error { return ccl.AllGather(bg, c, x, x) },
			"AllGatherV":         func() error { return ccl.AllGatherV(bg, c, x, x, n, nil) },
			"Broadcast":          func() error { return ccl.Broadcast(bg, c, x, 0) },
			"Gather":             func() error { return ccl.Gather(bg, c, x, x, 0) },
			"GatherV":            func() error { return ccl.GatherV(bg, c, x, x, n, nil, 0) },
			"Scatter":            func() error { return ccl.Scatter(bg, c, x, x, 0) },
			"ScatterV":           func() error { return ccl.ScatterV(bg, c, x, n, nil, x, 0) },
			"AllToAll":           func() error { return ccl.AllToAll(bg, c, x, x) },
			"AllToAllV":          func() error { return ccl.AllToAllV(bg, c, x, n, nil, x, n, nil) },
			"Send":               func() error { return ccl.Send(bg, c, x, 0, 0) },
			"Recv":               func() error { _, err := ccl.Recv(bg, c, x, 0, 0); return err },
			"RecvBytes":          func() error { _, _, err := ccl.RecvBytes(bg, c, 0, 0, 8); return err },
			"SendRecv":           func() error { _, err := ccl.SendRecv(bg, c, x, 0, y, 0, 0); return err },
			"Isend":              func() error { return ccl.Isend(bg, c, x, 0, 0).Wait(bg) },
			"Irecv":              func() error { return ccl.Irecv(bg, c, x, 0, 0).Wait(bg) },
			"AllReduceAsync": func() error {
				return started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, c, x, x, ccl.Sum, async) }).Wait(bg)
			},
			"ReduceScatterVAsync": func() error {
				return started(func(async ccl.CallOption) error { return ccl.ReduceScatterV(bg, c, x, x, ccl.Sum, n, async) }).Wait(bg)
			},
			"AllToAllVAsync": func() error {
				return started(func(async ccl.CallOption) error { return ccl.AllToAllV(bg, c, x, n, nil, x, n, nil, async) }).Wait(bg)
			},
		} {
			t.Run(name+"/"+call, func(t *testing.T) { require.ErrorIs(t, err(), ccl.ErrInvalidCommunicator) })
		}
	}
}
