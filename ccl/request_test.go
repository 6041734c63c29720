package ccl_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// A request makes its call at every start, in the order of the queue, and allocates nothing.
func TestRequest(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		const runs = 50
		other := async(func() error {
			x := []int32{1, 2}
			r := ccl.AllReduceInit(g[1], x, x, ccl.Sum)
			for range runs + 2 {
				x[0], x[1] = 1, 2
				if err := r.Start(bg).Wait(bg); err != nil {
					return err
				}
				if err := g[1].Barrier(bg); err != nil {
					return err
				}
			}
			return nil
		})
		x := []int32{3, 4}
		r := ccl.AllReduceInit(g[0], x, x, ccl.Sum)
		run := func() {
			x[0], x[1] = 3, 4
			w := r.Start(bg)
			require.NoError(t, g[0].Barrier(bg)) // after the calls of the queue
			require.NoError(t, w.Wait(bg))
			require.Equal(t, []int32{4, 6}, x)
		}
		for range runs + 2 {
			run()
		}
		require.NoError(t, other())
	})
}

// Also not with a context that can be cancelled.
func TestRequestAllocatesNothing(t *testing.T) {
	cancellable, cancel := context.WithCancel(bg)
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": bg, "cancellable": cancellable} {
		t.Run(name, func(t *testing.T) { testRequestAllocatesNothing(t, ctx) })
	}
}

func testRequestAllocatesNothing(t *testing.T, ctx context.Context) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		const runs = 200
		reduce := func(c *ccl.Communicator) func() {
			x := make([]float32, 1000)
			r := ccl.AllReduceInit(c, x, x, ccl.Sum)
			return func() {
				if err := r.Start(ctx).Wait(ctx); err != nil {
					panic(err)
				}
			}
		}
		other := async(func() error {
			f := reduce(g[1])
			for range runs + 1 + warm {
				f()
			}
			return nil
		})
		f := reduce(g[0])
		for range warm {
			f()
		}
		require.LessOrEqual(t, testing.AllocsPerRun(runs, f), 0.5) // of both ranks
		require.NoError(t, other())
	})
}

// All goroutines that wait for a Work learn that it has ended, whichever of them give up before, at every start.
func TestManyWait(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		x, y := []int32{1}, []int32{2}
		r := ccl.AllReduceInit(g[0], x, x, ccl.Sum)
		for range 20 {
			w := r.Start(bg)
			impatient, giveUp := context.WithCancel(bg)
			late, cancel := context.WithCancel(bg)
			var waits []func() error
			for i := range 8 {
				ctx := []context.Context{impatient, late}[i%2]
				waits = append(waits, async(func() error { return w.Wait(ctx) }))
			}
			giveUp()
			for i := 0; i < len(waits); i += 2 {
				require.ErrorIs(t, waits[i](), context.Canceled)
			}
			require.NoError(t, ccl.AllReduce(bg, g[1], y, y, ccl.Sum))
			for i := 1; i < len(waits); i += 2 {
				require.NoError(t, waits[i]())
			}
			cancel()
			require.NoError(t, errors.Join(w.Wait(impatient), w.Wait(late)), "it has ended")
		}
	})
}

// warm is the number of calls after which a communicator has the memory that it needs.
const warm = 50

// A request that still runs is not started again.
func TestRequestThatRuns(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		x, y := []int32{1}, []int32{2}
		r := ccl.AllReduceInit(g[0], x, x, ccl.Sum)
		first := r.Start(bg)
		var wrong *ccl.InvalidArgumentError
		require.ErrorAs(t, r.Start(bg).Wait(bg), &wrong)
		require.Contains(t, wrong.Error(), "starts a request that still runs")
		require.NoError(t, ccl.AllReduce(bg, g[1], y, y, ccl.Sum))
		require.NoError(t, first.Wait(bg))
		require.Equal(t, []int32{3}, x)
		require.NoError(t, g[0].Close())
		require.ErrorIs(t, r.Start(bg).Wait(bg), ccl.ErrClosed)
	})
}

// startsInVain starts a request on all ranks with a context that has ended, and waits for its end, not for its error.
func startsInVain(requests []*ccl.Request) {
	ended, end := context.WithCancel(bg)
	end()
	for _, r := range requests {
		<-r.Start(ended).Done()
	}
}

// requestsOf returns an all-reduce of each rank.
func requestsOf(g []*ccl.Communicator) []*ccl.Request {
	requests := make([]*ccl.Request, len(g))
	for r := range g {
		x := []int32{1}
		requests[r] = ccl.AllReduceInit(g[r], x, x, ccl.Sum)
	}
	return requests
}

// The error of a start that the program has not seen is not lost when the next start succeeds: Drain returns it, once. It does
// not return errors that the program has seen.
func TestDrainOfRequestsThatFailed(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		requests := requestsOf(g)
		again := func() {
			require.NoError(t, errors.Join(each(2, func(r int) error { return requests[r].Start(bg).Wait(bg) })...))
		}
		for range 2 {
			startsInVain(requests)
			again()
			for _, c := range g {
				require.ErrorIs(t, c.Drain(bg), context.Canceled)
				require.NoError(t, c.Drain(bg))
			}
		}
		ended, end := context.WithCancel(bg)
		end()
		for _, r := range requests {
			require.ErrorIs(t, r.Start(ended).Wait(bg), context.Canceled)
		}
		again()
		for _, c := range g {
			require.NoError(t, c.Drain(bg))
		}
	})
}

// Drain does not wait for a start that comes after it has begun, also of a request whose earlier start has failed.
func TestDrainOfRequestThatIsStartedAgain(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		requests := requestsOf(g)
		startsInVain(requests)
		before := started(func(async ccl.CallOption) error { return g[0].Barrier(bg, async) })
		drained := async(func() error { return g[0].Drain(bg) })
		for !ccl.IsAwaited(before) { // it has read the queue
			runtime.Gosched()
		}
		again := requests[0].Start(bg)
		require.NoError(t, g[1].Barrier(bg))
		over := make(chan error)
		go func() { over <- drained() }()
		select {
		case err := <-over:
			require.ErrorIs(t, err, context.Canceled)
			requireUnfinished(t, ccl.UnfinishedError{Calls: 1}, err)
		case <-time.After(patient / 2):
			t.Error("Drain waits for a start that came later")
			defer func() { <-over }()
		}
		require.NoError(t, requests[1].Start(bg).Wait(bg))
		require.NoError(t, again.Wait(bg))
	})
}

// Drain returns the error of a start that was refused because the request still ran, unless the program has seen it.
func TestDrainOfRequestThatRuns(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		requests := requestsOf(g)
		first := requests[0].Start(bg)
		requests[0].Start(bg)
		require.Error(t, requests[0].Start(bg).Wait(bg))
		require.NoError(t, requests[1].Start(bg).Wait(bg))
		require.NoError(t, first.Wait(bg))
		err := g[0].Drain(bg)
		var wrong *ccl.InvalidArgumentError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, 1, strings.Count(err.Error(), "still runs"), "%v", err)
		require.NoError(t, g[0].Drain(bg))
	})
}
