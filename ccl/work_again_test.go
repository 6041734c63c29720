package ccl_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// A Work that has ended may start a call of another communicator at once: the queue of the first one
// goes on.
func TestWorkGoesToAnotherCommunicator(t *testing.T) {
	connect := func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }
	a, b := group(t, connect, 1)[0], group(t, connect, 1)[0]
	var works [3]ccl.Work
	for range 2000 {
		for i := range works {
			require.NoError(t, a.Barrier(bg, ccl.WithWork(&works[i])))
		}
		for i := range works {
			require.NoError(t, works[i].Wait(bg))
			require.NoError(t, b.Barrier(bg, ccl.WithWork(&works[i])))
		}
		for i := range works {
			require.NoError(t, works[i].Wait(bg))
		}
	}
}

// Drain counts a wait for the communicator of the call, also if the Work has gone to another one
// by then.
func TestDrainOfAWorkThatGoesToAnotherCommunicator(t *testing.T) {
	connect := func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }
	a, b := group(t, connect, 2), group(t, connect, 1)[0]
	var w ccl.Work
	for range 200 {
		require.NoError(t, a[0].Barrier(bg, ccl.WithWork(&w)))
		drained := async(func() error { return a[0].Drain(bg) })
		for ccl.WaitingOf(a[0]) == 0 {
			runtime.Gosched()
		}
		require.NoError(t, a[1].Barrier(bg))
		<-w.Done()
		require.NoError(t, b.Barrier(bg, ccl.WithWork(&w)))
		require.NoError(t, w.Wait(bg))
		require.NoError(t, drained())
		require.Zero(t, ccl.WaitingOf(a[0]))
		require.Zero(t, ccl.WaitingOf(b))
	}
}

// A copy of a Work, such as an element of a slice that has grown, is not the Work of the call: it
// starts a call as a new Work does, and there is nothing to wait for before.
func TestCopiedWork(t *testing.T) {
	g := group(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }, 2)
	works := make([]ccl.Work, 2)
	start := func(w *ccl.Work) { require.NoError(t, g[0].Barrier(bg, ccl.WithWork(w))) }
	start(&works[0])
	start(&works[1]) // in the queue
	copies := slices.Clone(works[1:])
	require.ErrorContains(t, copies[0].Wait(bg), "copy")

	start(&copies[0])
	for range 3 {
		require.NoError(t, g[1].Barrier(bg))
	}
	for _, w := range []*ccl.Work{&works[0], &works[1], &copies[0]} {
		require.NoError(t, w.Wait(bg))
	}

	ended := slices.Clone(works)
	require.NoError(t, ended[0].Wait(bg))
	start(&ended[0])
	require.NoError(t, g[1].Barrier(bg))
	require.NoError(t, ended[0].Wait(bg))
}

// A call that did not run has no times, also if one did that was started with the same Work.
func TestWorkForgetsItsTimes(t *testing.T) {
	alone := group(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }, 1)[0]
	var w ccl.Work
	require.NoError(t, alone.Barrier(bg, ccl.WithWork(&w)))
	require.NoError(t, w.Wait(bg))
	_, ended := w.Times()
	require.False(t, ended.IsZero())
	require.ErrorIs(t, (*ccl.Communicator)(nil).Barrier(bg, ccl.WithWork(&w)), ccl.ErrInvalidCommunicator)
	begun, ended := w.Times()
	require.True(t, begun.IsZero() && ended.IsZero())
}

// A Work can start a call of a closed communicator: the call ends with ErrClosed.
func TestWorkAfterClose(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		require.NoError(t, g[0].Close())
		var w ccl.Work
		for range 2 {
			require.NoError(t, g[0].Barrier(bg, ccl.WithWork(&w)))
			require.ErrorIs(t, w.Wait(bg), ccl.ErrClosed)
		}
	})
}

// If a kernel ends the goroutine of an asynchronous call, the error of the Work is the failure of
// the group, and the calls behind it end with it as well.
func TestKernelExitsGoroutineOfAnAsynchronousCall(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		exit := &ccl.Kernel{Run: func(*ccl.Call) error { runtime.Goexit(); return nil }}
		g := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"exit": exit}))
		errs := each(2, func(r int) error {
			x := []int32{1}
			var w, next ccl.Work
			err := ccl.AllReduce(bg, g[r], x, x, ccl.Sum, ccl.WithAlgorithm("exit"), ccl.WithLabel("loss"), ccl.WithWork(&w))
			err = errors.Join(err, g[r].Barrier(bg, ccl.WithWork(&next)))
			if next.Wait(bg) == nil {
				return fmt.Errorf("the next call has not failed, %w", err)
			}
			return errors.Join(err, w.Wait(bg))
		})
		for r, err := range errs {
			call, ok := errors.AsType[*ccl.CallError](err)
			require.True(t, ok, "rank %d: got %v", r, err)
			require.Equal(t, "loss", call.Label)
			_, ok = errors.AsType[*ccl.CollectiveFailedError](call.Err)
			require.True(t, ok, "rank %d: got %v", r, err)
			require.ErrorContains(t, err, "it ended its goroutine by runtime.Goexit")
		}
	})
}
