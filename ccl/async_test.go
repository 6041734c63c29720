package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// started returns the Work of a call that f makes with an option of its own.
func started(f func(async ccl.CallOption) error) *ccl.Work {
	w := new(ccl.Work)
	_ = f(ccl.WithWork(w)) // w has the error as well
	return w
}

// Asynchronous calls are made in the order in which they were started, also without a Wait, and
// before a later synchronous call.
func TestAsyncOrder(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3} {
			g := group(t, connect, n)
			errs := each(n, func(r int) error {
				x, y := []int64{int64(r + 1)}, make([]int64, n)
				var works []*ccl.Work
				for range 20 {
					works = append(works,
						started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[r], x, x, ccl.Sum, async) }),     // x = sum on all ranks,
						started(func(async ccl.CallOption) error { return ccl.AllGather(bg, g[r], x, y, async) }),              // y = all of them
						started(func(async ccl.CallOption) error { return ccl.ReduceScatter(bg, g[r], y, x, ccl.Max, async) }), // x = that again
						started(func(async ccl.CallOption) error { return ccl.Broadcast(bg, g[r], x, 0, async) }),
						started(func(async ccl.CallOption) error { return g[r].Barrier(bg, async) }))
				}
				if err := sum(g[r], 5); err != nil { // after all of these
					return err
				}
				want := int64(n * (n + 1) / 2)
				for range 19 {
					want *= int64(n)
				}
				if x[0] != want || !slices.Equal(y, slices.Repeat([]int64{want}, n)) {
					return fmt.Errorf("got %d and %d, want %d", x, y, want)
				}
				for _, w := range works {
					select {
					case <-w.Done():
					default:
						return errors.New("a call is done before one that was started earlier")
					}
					if err := errors.Join(w.Err(), w.Wait(bg), w.Wait(bg)); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

// Every asynchronous variant does what its collective does.
func TestAsyncTwins(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		const n = 2
		g := group(t, connect, n)
		errs := each(n, func(r int) error {
			c, me := g[r], int32(r)
			in := []int32{me + 1, me + 3}
			var out [16][]int32
			for i := range out {
				out[i] = make([]int32, 2)
			}
			recv, send, counts := out[3], []int32(nil), []int(nil)
			if r == 1 {
				recv = nil
			} else {
				send, counts = in, []int{1, 1}
			}
			buf := []int32{me + 8}
			recvV := recv
			if r == 0 {
				recvV = out[15]
			}
			works := []*ccl.Work{
				started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, c, in, out[0], ccl.Sum, async) }),
				started(func(async ccl.CallOption) error { return ccl.AllReduceCoalesced(bg, c, [][]int32{buf}, ccl.Sum, async) }),
				started(func(async ccl.CallOption) error { return ccl.ReduceScatter(bg, c, in, out[1][:1], ccl.Sum, async) }),
				started(func(async ccl.CallOption) error {
					return ccl.ReduceScatterV(bg, c, in, out[2][:2*r], ccl.Sum, []int{0, 2}, async)
				}),
				started(func(async ccl.CallOption) error { return ccl.Reduce(bg, c, in, recv, ccl.Sum, 0, async) }),
				started(func(async ccl.CallOption) error { return ccl.Scan(bg, c, in, out[4], ccl.Sum, async) }),
				started(func(async ccl.CallOption) error { return ccl.ExScan(bg, c, in, out[5], ccl.Sum, async) }),
				started(func(async ccl.CallOption) error { return ccl.AllGather(bg, c, in[:1], out[6], async) }),
				started(func(async ccl.CallOption) error {
					return ccl.AllGatherV(bg, c, in[:1], out[7], []int{1, 1}, []int{1, 0}, async)
				}),
				started(func(async ccl.CallOption) error { return ccl.GatherV(bg, c, in[:1], recvV, counts, nil, 0, async) }),
				started(func(async ccl.CallOption) error { return ccl.Scatter(bg, c, send, out[8][:1], 0, async) }),
				started(func(async ccl.CallOption) error { return ccl.ScatterV(bg, c, send, counts, nil, out[9][:1], 0, async) }),
				started(func(async ccl.CallOption) error { return ccl.AllToAll(bg, c, in, out[10], async) }),
				started(func(async ccl.CallOption) error {
					return ccl.AllToAllV(bg, c, in, []int{1, 1}, nil, out[11], []int{1, 1}, []int{1, 0}, async)
				}),
				started(func(async ccl.CallOption) error { return ccl.Gather(bg, c, in[1:], out[12][:2-2*r], 0, async) }),
				started(func(async ccl.CallOption) error { return ccl.Broadcast(bg, c, out[13], 0, async) }),
			}
			for _, w := range works {
				if err := w.Wait(bg); err != nil {
					return err
				}
			}
			rank := func(a, b []int32) []int32 {
				if r == 0 {
					return a
				}
				return b
			}
			for i, want := range [][]int32{
				{3, 7}, rank([]int32{3, 0}, []int32{7, 0}), rank([]int32{0, 0}, []int32{3, 7}), rank([]int32{3, 7}, []int32{0, 0}),
				rank([]int32{1, 3}, []int32{3, 7}), rank([]int32{0, 0}, []int32{1, 3}), {1, 2}, {2, 1},
				rank([]int32{1, 0}, []int32{3, 0}), rank([]int32{1, 0}, []int32{3, 0}),
				rank([]int32{1, 2}, []int32{3, 4}), rank([]int32{2, 1}, []int32{4, 3}),
				rank([]int32{3, 4}, []int32{0, 0}), {0, 0},
			} {
				if !slices.Equal(out[i], want) {
					return fmt.Errorf("rank %d, out[%d] is %d, want %d", r, i, out[i], want)
				}
			}
			if want := rank([]int32{1, 2}, []int32{0, 0}); !slices.Equal(out[15], want) || buf[0] != 17 {
				return fmt.Errorf("rank %d: gathered %d, coalesced %d", r, out[15], buf)
			}
			return nil
		})
		require.NoError(t, errors.Join(errs...))
	})
}

// The Work of a call returns its error, and the calls after it still run.
func TestAsyncRefused(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		errs := each(2, func(r int) error {
			bad := started(func(async ccl.CallOption) error {
				return ccl.AllReduce(bg, g[r], []int32{1}, []int32{1, 2}, ccl.Sum, async)
			})
			x := []int32{1}
			good := started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[r], x, x, ccl.Sum, async) })
			var size *ccl.InvalidBufferSizeError
			if !errors.As(bad.Wait(bg), &size) || !errors.As(bad.Err(), &size) {
				return fmt.Errorf("got %v", bad.Err())
			}
			if err := good.Wait(bg); err != nil || x[0] != 2 {
				return fmt.Errorf("%d, %w", x, err)
			}
			return nil
		})
		require.NoError(t, errors.Join(errs...))
	})
	var c *ccl.Communicator
	require.ErrorIs(t, started(func(async ccl.CallOption) error { return ccl.Broadcast(bg, c, []int32{1}, 0, async) }).Wait(bg), ccl.ErrInvalidCommunicator)
}

// Wait's context ends only the wait; the context of the call ends the call.
func TestAsyncContexts(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		x := []int32{1}
		w := started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[0], x, x, ccl.Sum, async) })
		ended, cancel := context.WithCancel(bg)
		cancel()
		require.ErrorIs(t, w.Wait(ended), context.Canceled)
		require.NoError(t, w.Err())
		require.NoError(t, ccl.AllReduce(bg, g[1], []int32{2}, []int32{0}, ccl.Sum))
		require.NoError(t, w.Wait(bg))
		require.Equal(t, int32(3), x[0])
		require.NoError(t, w.Wait(ended), "it is done: nothing to wait for")

		running, stop := context.WithCancel(bg)
		w = started(func(async ccl.CallOption) error { return ccl.AllReduce(running, g[0], x, x, ccl.Sum, async) })
		after := started(func(async ccl.CallOption) error { return g[0].Barrier(bg, async) })
		stop()
		require.ErrorIs(t, w.Wait(bg), context.Canceled, "rank 1 has not come")
		require.Error(t, ccl.AllReduce(bg, g[1], []int32{2}, []int32{0}, ccl.Sum))
		require.Error(t, after.Wait(bg))
	})
}

// Close ends the calls in the queue; no goroutine is left.
func TestAsyncClosed(t *testing.T) {
	before := runtime.NumGoroutine()
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var works []*ccl.Work
		for range 5 {
			works = append(works, started(func(async ccl.CallOption) error { return g[0].Barrier(bg, async) }))
		}
		requireUnfinished(t, ccl.UnfinishedError{Calls: 5}, g[0].Close())
		for _, w := range works {
			require.ErrorIs(t, w.Wait(bg), ccl.ErrClosed)
		}
	})
	for deadline := time.Now().Add(patient); runtime.NumGoroutine() > before; runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "%d goroutines more", runtime.NumGoroutine()-before)
	}
}

// An asynchronous call allocates its Work and nothing else.
func TestAsyncAllocates(t *testing.T) {
	g := group(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }, 1)
	x := make([]float32, 100)
	once := func() {
		require.NoError(t, started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[0], x, x, ccl.Sum, async) }).Wait(bg))
	}
	for range 100 {
		once()
	}
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	for range 1000 {
		once()
	}
	runtime.ReadMemStats(&b)
	require.LessOrEqual(t, b.Mallocs-a.Mallocs, uint64(1000+100))
}

// With debug, a call is refused if a buffer was changed while the call was in the queue.
func TestAsyncDebug(t *testing.T) {
	cfg, err := config.Parse("test", []byte("version: 1\ndefaults: {debug: true}\nalgorithms: {direct: {module: direct}}\nrules: [{algorithm: direct}]\n"))
	require.NoError(t, err)
	s, err := cfg.Resolve(config.Request{Registry: ccl.Registry{"direct": direct.Algorithm}, Ranks: 2})
	require.NoError(t, err)
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, spoil := range []string{"", "input", "output"} {
			g := join(t, connect, s)
			x, y := []int32{1}, []int32{0}
			first := started(func(async ccl.CallOption) error { return g[0].Barrier(bg, async) })
			second := started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[0], x, y, ccl.Sum, async) })
			switch spoil {
			case "input":
				x[0] = 2
			case "output":
				y[0] = 2
			}
			require.NoError(t, g[1].Barrier(bg))
			require.NoError(t, first.Wait(bg))
			err := ccl.AllReduce(bg, g[1], []int32{1}, []int32{0}, ccl.Sum)
			if spoil == "" {
				require.NoError(t, errors.Join(err, second.Wait(bg)))
				continue
			}
			var bad *ccl.InvalidArgumentError
			require.ErrorAs(t, second.Wait(bg), &bad)
			require.ErrorContains(t, bad, "a buffer was changed after the call was started and before the queued call ran")
			var m *ccl.MismatchError
			require.ErrorAs(t, err, &m)
			require.Equal(t, "arguments", m.Field)
		}
	})
}

// With debug, a call whose input was changed while it ran fails.
func TestAsyncDebugWhileItRuns(t *testing.T) {
	x := []int32{1}
	spoiler := &ccl.Algorithm{Name: "spoiler", Doc: "of a test", Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc: "of a test", Cost: func(ccl.Shape) ccl.Cost { return ccl.Cost{} },
			Run: func(c *ccl.Call) error {
				if c.Rank() == 0 {
					x[0]++
				}
				return nil
			},
		},
	}}
	cfg, err := config.Parse("test", []byte("version: 1\ndefaults: {debug: true}\nalgorithms: {spoiler: {module: spoiler}}\nrules: [{algorithm: spoiler}]\n"))
	require.NoError(t, err)
	s, err := cfg.Resolve(config.Request{Registry: ccl.Registry{spoiler.Name: spoiler}, Ranks: 2})
	require.NoError(t, err)
	g := join(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }, s)
	w := started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[0], x, []int32{0}, ccl.Sum, async) })
	require.NoError(t, started(func(async ccl.CallOption) error {
		return ccl.AllReduce(bg, g[1], []int32{1}, []int32{0}, ccl.Sum, async)
	}).Wait(bg))
	require.ErrorContains(t, w.Wait(bg), "a buffer was changed after the call was started and while the call ran")
}

// A Work is used again when its call has ended, and allocates nothing then; not before.
func TestWorkIsUsedAgain(t *testing.T) {
	connect := func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }
	g := group(t, connect, 2)
	x := []int32{1}
	var w ccl.Work
	require.ErrorContains(t, w.Wait(bg), "no call was started")
	start := func() error { return ccl.AllReduce(bg, g[0], x, x, ccl.Sum, ccl.WithWork(&w)) }
	require.NoError(t, start())
	err := start()
	var invalid *ccl.InvalidArgumentError
	require.ErrorAs(t, err, &invalid)
	require.ErrorContains(t, err, "rank 0 starts a call with a Work that still runs")

	other := func() { require.NoError(t, ccl.AllReduce(bg, g[1], []int32{1}, make([]int32, 1), ccl.Sum)) }
	other()
	require.NoError(t, w.Wait(bg))
	require.Equal(t, int32(2), x[0])
	require.NoError(t, start())
	other()
	require.NoError(t, w.Wait(bg))
	require.Equal(t, int32(3), x[0])
	require.NoError(t, g[0].Drain(bg))

	alone := group(t, connect, 1)[0]
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if ccl.AllReduce(bg, alone, x, x, ccl.Sum, ccl.WithWork(&w)) != nil || w.Wait(bg) != nil {
			t.Fail()
		}
	}))
}

// A call that cannot be started returns its error at once, and so does its Work.
func TestWorkOfNoCommunicator(t *testing.T) {
	var w ccl.Work
	require.ErrorIs(t, ccl.Broadcast(bg, nil, []int32{1}, 0, ccl.WithWork(&w)), ccl.ErrInvalidCommunicator)
	require.ErrorIs(t, w.Wait(bg), ccl.ErrInvalidCommunicator)
	require.ErrorIs(t, w.Err(), ccl.ErrInvalidCommunicator)
}
