package ccl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// A synchronous call that waits for the queue ends by its own context and its own timeout. It
// is refused when the calls before it are done: these are not affected, nor are later calls if
// all ranks refuse it.
func TestCallBehindTheQueueGivesUp(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var x, y [2]int32
		gone, cancel := context.WithCancelCause(bg)
		stop := errors.New("the user pressed stop")

		first := started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[0], x[:], x[:], ccl.Sum, async) })
		time.AfterFunc(0, func() { cancel(stop) })
		err := g[0].Barrier(gone)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, stop)
		err = g[0].Barrier(bg, ccl.WithTimeout(time.Millisecond))
		late, ok := errors.AsType[*transport.TimeoutError](err)
		require.True(t, ok, "got %v", err)
		require.Equal(t, time.Millisecond, late.After)
		select {
		case <-first.Done():
			require.Fail(t, "the call before has ended")
		default:
		}

		require.NoError(t, ccl.AllReduce(bg, g[1], y[:], y[:], ccl.Sum))
		require.NoError(t, first.Wait(bg))
		require.ErrorIs(t, g[1].Barrier(gone), context.Canceled)
		require.ErrorIs(t, g[1].Barrier(gone), context.Canceled)
		allSum(t, g, 1000)
	})
}

// If a rank gives up a call in its queue, the ranks that make the call learn that it was rejected.
func TestOthersHearOfACallThatGaveUpItsTurn(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var x, y [2]int32
		gone, cancel := context.WithCancel(bg)
		first := started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[0], x[:], x[:], ccl.Sum, async) })
		time.AfterFunc(0, cancel)
		require.ErrorIs(t, g[0].Barrier(gone, ccl.WithLabel("end of epoch")), context.Canceled)
		require.NoError(t, ccl.AllReduce(bg, g[1], y[:], y[:], ccl.Sum))
		mismatch, ok := errors.AsType[*ccl.MismatchError](g[1].Barrier(bg))
		require.True(t, ok)
		require.Equal(t, "arguments", mismatch.Field)
		last, ok := ccl.LastCallOf(g[1], 0)
		require.True(t, ok && last.Rejected)
		require.Equal(t, "end of epoch", last.Label)
		require.NoError(t, first.Wait(bg))
	})
}

// The configured timeout bounds the wait for each call of the queue, not for the whole queue.
func TestCallBehindALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, timeout = 5, time.Minute
		parked := func(n int) ([]transport.Endpoint, error) { return local.NewWaiting(n, local.Park), nil }
		g := join(t, parked, settings(t, 2, timeout, nil))
		var x, y [2]int32
		for range calls {
			started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[0], x[:], x[:], ccl.Sum, async) })
		}
		behind := async(func() error { return g[0].Barrier(bg) })
		for range calls {
			time.Sleep(timeout / 2)
			require.NoError(t, ccl.AllReduce(bg, g[1], y[:], y[:], ccl.Sum))
		}
		require.NoError(t, g[1].Barrier(bg))
		require.NoError(t, behind())

		// If a call of the queue does not end within the timeout, the call behind it gives up.
		w := started(func(async ccl.CallOption) error {
			return ccl.AllReduce(bg, g[0], x[:], x[:], ccl.Sum, ccl.WithTimeout(-1), async)
		})
		start := time.Now()
		_, ok := errors.AsType[*transport.TimeoutError](g[0].Barrier(bg))
		require.True(t, ok)
		require.Equal(t, timeout, time.Since(start))
		g[0].Abort(nil)
		require.Error(t, w.Wait(bg))
		g[0].Close()
		g[1].Close()
	})
}
