package ccl_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// repeated starts a call with the same Work at every start.
type repeated func(context.Context) *ccl.Work

// repeat returns an all-reduce that is repeated.
func repeat[T ccl.Element](c *ccl.Communicator, send, recv []T, op ccl.Op, opts ...ccl.CallOption) repeated {
	w := new(ccl.Work)
	opts = append(opts, ccl.WithWork(w))
	return func(ctx context.Context) *ccl.Work {
		_ = ccl.AllReduce(ctx, c, send, recv, op, opts...) // the Work has the error as well
		return w
	}
}

// A Work makes its call at every start, in the order of the queue.
func TestRepeated(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		const runs = 50
		other := async(func() error {
			x := []int32{1, 2}
			r := repeat(g[1], x, x, ccl.Sum)
			for range runs + 2 {
				x[0], x[1] = 1, 2
				if err := r(bg).Wait(bg); err != nil {
					return err
				}
				if err := g[1].Barrier(bg); err != nil {
					return err
				}
			}
			return nil
		})
		x := []int32{3, 4}
		r := repeat(g[0], x, x, ccl.Sum)
		run := func() {
			x[0], x[1] = 3, 4
			w := r(bg)
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
func TestRepeatedAllocatesNothing(t *testing.T) {
	cancellable, cancel := context.WithCancel(bg)
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": bg, "cancellable": cancellable} {
		t.Run(name, func(t *testing.T) { testRepeatedAllocatesNothing(t, ctx) })
	}
}

func testRepeatedAllocatesNothing(t *testing.T, ctx context.Context) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		const runs = 200
		reduce := func(c *ccl.Communicator) func() {
			x := make([]float32, 1000)
			r := repeat(c, x, x, ccl.Sum)
			return func() {
				if err := r(ctx).Wait(ctx); err != nil {
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
		r := repeat(g[0], x, x, ccl.Sum)
		for range 20 {
			w := r(bg)
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

// startsInVain starts a call on all ranks with a context that has ended, and waits for its end, not for its error.
func startsInVain(calls []repeated) {
	ended, end := context.WithCancel(bg)
	end()
	for _, r := range calls {
		<-r(ended).Done()
	}
}

// repeatedOf returns an all-reduce of each rank.
func repeatedOf(g []*ccl.Communicator) []repeated {
	calls := make([]repeated, len(g))
	for r := range g {
		x := []int32{1}
		calls[r] = repeat(g[r], x, x, ccl.Sum)
	}
	return calls
}

// The error of a start that the program has not seen is not lost when the next start succeeds: Drain returns it, once. It does
// not return errors that the program has seen.
func TestDrainOfRepeatedCallsThatFailed(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		calls := repeatedOf(g)
		again := func() {
			require.NoError(t, errors.Join(each(2, func(r int) error { return calls[r](bg).Wait(bg) })...))
		}
		for range 2 {
			startsInVain(calls)
			again()
			for _, c := range g {
				require.ErrorIs(t, c.Drain(bg), context.Canceled)
				require.NoError(t, c.Drain(bg))
			}
		}
		ended, end := context.WithCancel(bg)
		end()
		for _, r := range calls {
			require.ErrorIs(t, r(ended).Wait(bg), context.Canceled)
		}
		again()
		for _, c := range g {
			require.NoError(t, c.Drain(bg))
		}
	})
}

// Drain does not wait for a start that comes after it has begun, also with a Work whose earlier start has failed.
func TestDrainOfRepeatedCallThatIsStartedAgain(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		calls := repeatedOf(g)
		startsInVain(calls)
		before := started(func(async ccl.CallOption) error { return g[0].Barrier(bg, async) })
		drained := async(func() error { return g[0].Drain(bg) })
		for !ccl.IsAwaited(before) { // it has read the queue
			runtime.Gosched()
		}
		again := calls[0](bg)
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
		require.NoError(t, calls[1](bg).Wait(bg))
		require.NoError(t, again.Wait(bg))
	})
}
