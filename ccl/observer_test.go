package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// notes are what an observer has seen of each rank, in order.
type notes struct {
	mu  sync.Mutex
	all map[int][]string
}

func (n *notes) add(c *ccl.ObservedCall, format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[int][]string{}
	}
	n.all[c.GlobalRank] = append(n.all[c.GlobalRank], fmt.Sprintf(format, args...))
}

type keyOfContext struct{}

// An observer sees each call of the program once, from its begin to its end, in all groups.
func TestObserver(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		var seen notes
		g := join(t, connect, settings(t, 3, patient, nil), ccl.WithObserver(func(ctx context.Context, c ccl.ObservedCall) func(ccl.ObservedCall) {
			if c.Seq != 0 || c.Algorithm != "" || c.Bytes != 0 || c.Duration != 0 || c.Waiting != 0 || c.Err != nil {
				seen.add(&c, "known too early: %+v", c)
			}
			began := time.Now()
			what := fmt.Sprintf("%v of rank %d in %q, label %q, async %v, context %v", c.Collective, c.Rank, c.Group, c.Label, c.Async, ctx.Value(keyOfContext{}))
			if c.Collective == ccl.CollBarrier {
				seen.add(&c, "%s: not to its end", what)
				return nil
			}
			return func(c ccl.ObservedCall) {
				if c.Duration <= 0 || c.Duration > time.Since(began) || c.Waiting < 0 || c.Waiting > c.Duration {
					seen.add(&c, "times: %+v", c)
				}
				seen.add(&c, "%s: call %d, %d bytes by %q, failed %v", what, c.Seq, c.Bytes, c.Algorithm, c.Err != nil)
			}
		}))
		ctx := context.WithValue(bg, keyOfContext{}, "parent")
		require.NoError(t, errors.Join(each(3, func(r int) error {
			x := make([]float32, 5)
			if err := ccl.AllReduce(ctx, g[r], x, x, ccl.Sum, ccl.WithLabel("grads")); err != nil {
				return err
			}
			var w ccl.Work
			if err := ccl.Broadcast(ctx, g[r], x, 1, ccl.WithWork(&w), ccl.WithAlgorithm("direct")); err != nil {
				return err
			}
			if err := w.Wait(bg); err != nil {
				return err
			}
			var whole []int16
			var counts []int
			if r == 0 {
				whole, counts = make([]int16, 6), []int{1, 2, 3}
			}
			if err := ccl.GatherV(bg, g[r], make([]int16, r+1), whole, counts, nil, 0); err != nil {
				return err
			}
			if err := sum(g[r], 5, ccl.WithAlgorithm("none")); err == nil { // rejected by all
				return errors.New("an unknown algorithm")
			}
			part, err := g[r].Split(bg, min(r, 1), -r)
			if err != nil {
				return err
			}
			return errors.Join(sum(part, 3), part.Barrier(bg), part.Close())
		})...))
		require.Equal(t, []string{
			`all_reduce of rank 2 in "", label "grads", async false, context parent: call 1, 20 bytes by "direct", failed false`,
			`broadcast of rank 2 in "", label "", async true, context parent: call 2, 20 bytes by "direct", failed false`,
			`gather of rank 2 in "", label "", async false, context <nil>: call 4, 6 bytes by "direct", failed false`,
			`all_reduce of rank 2 in "", label "", async false, context <nil>: call 5, 0 bytes by "", failed true`,
			`split of rank 2 in "", label "", async false, context <nil>: call 6, 0 bytes by "", failed false`,
			`all_reduce of rank 0 in "of ranks 2, 1, made by split, call 6", label "", async false, context <nil>: call 1, 12 bytes by "direct", failed false`,
			`barrier of rank 0 in "of ranks 2, 1, made by split, call 6", label "", async false, context <nil>: not to its end`,
		}, seen.all[2])
		alone := seen.all[0]
		require.Equal(t, `all_reduce of rank 0 in "of rank 0, made by split, call 6", label "", async false, context <nil>: call 0, 12 bytes by "", failed false`, alone[len(alone)-2])
	})
}

// observedBy returns a group of two whose observer runs atBegin and atEnd in the calls of rank 1.
func observedBy(t *testing.T, connect connector, atBegin, atEnd func(ccl.ObservedCall)) []*ccl.Communicator {
	return join(t, connect, settings(t, 2, patient, nil), ccl.WithObserver(func(_ context.Context, c ccl.ObservedCall) func(ccl.ObservedCall) {
		if c.Rank == 0 {
			return nil
		}
		if atBegin != nil {
			atBegin(c)
		}
		return atEnd
	}))
}

// A panic of an observer is the call's error: at the begin of a call like wrong arguments, at its
// end the group's failure.
func TestObserverPanics(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		boom := errors.New("boom")
		g := observedBy(t, connect, func(ccl.ObservedCall) { panic(boom) }, nil)
		errs := each(2, func(r int) error { return sum(g[r], 5) })
		require.ErrorIs(t, errs[1], boom)
		require.ErrorContains(t, errs[1], "the observer panicked at observer_test.go:")
		mismatch, ok := errors.AsType[*ccl.MismatchError](errs[0])
		require.True(t, ok, "%v", errs[0])
		require.Equal(t, "arguments", mismatch.Field)
		require.ErrorContains(t, errs[0], "the observer panicked at observer_test.go:")

		g = observedBy(t, connect, nil, func(ccl.ObservedCall) { panic("late boom") })
		errs = each(2, func(r int) error { return sum(g[r], 5) })
		require.NoError(t, errs[0])
		require.ErrorContains(t, errs[1], "the observer panicked at observer_test.go:")
		require.ErrorContains(t, errs[1], "late boom")
		errs = each(2, func(r int) error { return sum(g[r], 5) })
		require.ErrorAs(t, errs[0], new(*transport.AbortedError))
		require.ErrorContains(t, errs[0], "late boom")
		require.Error(t, errs[1])

		alone := join(t, connect, settings(t, 1, patient, nil), ccl.WithObserver(func(context.Context, ccl.ObservedCall) func(ccl.ObservedCall) {
			return func(ccl.ObservedCall) { panic("boom") }
		}))
		for range 2 {
			require.ErrorContains(t, sum(alone[0], 5), "the observer panicked")
		}
	})
}

// If an observer ends the goroutine of the call, the group fails on all ranks.
func TestObserverEndsGoroutine(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, atBegin := range []bool{true, false} {
			end := func(ccl.ObservedCall) { runtime.Goexit() }
			g := observedBy(t, connect, end, nil)
			if !atBegin {
				g = observedBy(t, connect, nil, end)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = sum(g[1], 5)
			}()
			first := sum(g[0], 5) // at its end the call is done
			<-ended
			for _, err := range []error{errors.Join(first, sum(g[0], 5)), g[1].Err()} {
				require.ErrorContains(t, err, "the observer panicked: it ended its goroutine by runtime.Goexit")
			}
			require.NoError(t, errors.Join(g[0].Close(), g[1].Close()), "a call still runs")
		}
	})
}

// An observer cannot make calls of the group.
func TestObserverMakesNoCalls(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		var g []*ccl.Communicator
		errs := make(chan error, 2)
		call := func(ccl.ObservedCall) { errs <- sum(g[1], 5) }
		g = observedBy(t, connect, call, call)
		allSum(t, g, 5)
		require.ErrorIs(t, <-errs, ccl.ErrConcurrentUse)
		require.ErrorIs(t, <-errs, ccl.ErrConcurrentUse)
	})
}

// The call of a rank whose observer takes longer than the others wait fails, as theirs have.
func TestObserverTooLate(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		over := make(chan struct{})
		g := join(t, connect, settings(t, 2, 100*time.Millisecond, nil), ccl.WithObserver(func(_ context.Context, c ccl.ObservedCall) func(ccl.ObservedCall) {
			if c.Rank == 1 {
				<-over
			}
			return nil
		}))
		for rank, err := range each(2, func(r int) error {
			if r == 0 {
				defer close(over)
			}
			return ccl.AllReduce(bg, g[r], []int{1}, make([]int, 1), ccl.Sum)
		}) {
			late, ok := errors.AsType[*transport.TimeoutError](err)
			require.True(t, ok, "rank %d: %v", rank, err)
			require.Equal(t, []int{1}, append(late.Missing, late.Behind...), "rank %d: %v", rank, err)
		}
	})
}
