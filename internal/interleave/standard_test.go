//go:build interleave

package interleave

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// sequential are programs whose results the order of steps does not change.
var sequential = map[string]func() []any{
	"a timer's function": func() (got []any) {
		var n Int64
		timer := AfterFunc(time.Second, func() { n.Add(1) })
		got = append(got, timer.Stop(), timer.Stop(), timer.Reset(time.Second), timer.Reset(2*time.Second))
		Sleep(1500 * time.Millisecond)
		got = append(got, n.Load())
		Sleep(time.Second)
		got = append(got, n.Load(), timer.Stop(), timer.Reset(time.Second))
		Sleep(2 * time.Second)
		return append(got, n.Load(), timer.Reset(time.Hour), timer.Stop(), n.Load())
	},
	"a function that blocks does not keep its timer from firing": func() (got []any) {
		var n Int64
		free := make(chan struct{})
		timer := AfterFunc(time.Second, func() { n.Add(1); Receive(free) })
		Sleep(2 * time.Second)
		timer.Reset(time.Second)
		Sleep(2 * time.Second)
		got = append(got, n.Load())
		close(free)
		return got
	},
	"a timer's channel": func() (got []any) {
		timer := NewTimer(time.Second)
		got = append(got, timer.Stop(), timer.Stop(), timer.Reset(time.Second))
		Sleep(2 * time.Second)
		got = append(got, timer.Stop(), timer.Stop(), First(timer.C, After(time.Hour)))
		timer.Reset(time.Second)
		Sleep(2 * time.Second)
		got = append(got, timer.Reset(time.Second), First(timer.C, After(time.Minute)), timer.Stop(), timer.Reset(0))
		Receive(timer.C)
		return append(got, timer.Stop())
	},
	"the end of a context": func() (got []any) {
		var n Int64
		ctx, cancel := context.WithCancel(context.Background())
		stop := AfterContext(ctx, func() { n.Add(1) })
		got = append(got, stop(), stop())
		stop = AfterContext(ctx, func() { n.Add(10) })
		cancel()
		got = append(got, stop())
		Sleep(time.Second)
		got = append(got, n.Load(), stop())
		stop = AfterContext(ctx, func() { n.Add(100) })
		got = append(got, stop())
		Sleep(time.Second)
		stop = AfterContext(context.Background(), func() { n.Add(1000) })
		return append(got, n.Load(), stop(), stop())
	},
	"a timeout": func() (got []any) {
		start := time.Now()
		ctx, cancel := WithTimeout(context.Background(), time.Minute)
		defer cancel()
		got = append(got, First(ctx.Done(), After(time.Hour)), time.Since(start), ctx.Err())
		early, cancel := WithTimeout(context.Background(), time.Minute)
		cancel()
		return append(got, First(early.Done(), After(time.Hour)), early.Err())
	},
	"once": func() (got []any) {
		var once Once
		n := 0
		try := func() (p any) {
			defer func() { p = recover() }()
			once.Do(func() { n++; panic("first") })
			return nil
		}
		got = append(got, try(), try(), n)
		return got
	},
	"try a lock": func() (got []any) {
		var m Mutex
		got = append(got, m.TryLock(), m.TryLock())
		m.Unlock()
		return append(got, m.TryLock())
	},
	"a group": func() (got []any) {
		var g WaitGroup
		var n Int64
		g.Wait()
		for range 3 {
			g.Go(func() { Sleep(time.Second); n.Add(1) })
		}
		g.Wait()
		got = append(got, n.Load())
		g.Go(func() { n.Add(1) })
		g.Wait()
		return append(got, n.Load())
	},
	"waiters of a condition are woken in turn": func() (got []any) {
		var m Mutex
		c := Cond{L: &m}
		var order []int
		var g WaitGroup
		for i := range 3 {
			g.Go(func() { m.Lock(); c.Wait(); order = append(order, i); m.Unlock() })
			Sleep(time.Second)
		}
		c.Signal()
		Sleep(time.Second)
		m.Lock()
		got = append(got, order[0], len(order))
		m.Unlock()
		c.Broadcast()
		g.Wait()
		return append(got, len(order))
	},
}

// What programs see is what they see with the standard library.
func TestStandard(t *testing.T) {
	for name, program := range sequential {
		t.Run(name, func(t *testing.T) {
			var want, got []any
			synctest.Test(t, func(*testing.T) { want = program() })
			for seed := range uint64(40) {
				r := Run(t, Options{Seed: seed}, func() { got = program() })
				require.Nil(t, r.Finding)
				require.Equal(t, want, got, "seed %d", seed)
			}
		})
	}
}

// A reader waits for a writer that waits, and comes before the next writer, as in package sync. (Its
// locks keep the clock of a bubble from advancing, so that they cannot be compared.)
func TestReaders(t *testing.T) {
	for seed := range uint64(40) {
		var before, after int64
		r := Run(t, Options{Seed: seed}, func() {

			var m RWMutex
			var order Int64
			var g WaitGroup
			note := func(digit int64) { order.Store(order.Load()*10 + digit) }
			m.RLock()
			g.Go(func() { m.Lock(); note(1); Sleep(5 * time.Second); m.Unlock() })
			Sleep(time.Second)
			g.Go(func() { m.RLock(); note(2); Sleep(time.Second); m.RUnlock() })
			Sleep(time.Second)
			before = order.Load()
			m.RUnlock()
			Sleep(time.Second)
			g.Go(func() { m.Lock(); note(3); m.Unlock() })
			g.Wait()
			after = order.Load()
		})
		require.Nil(t, r.Finding)
		require.EqualValues(t, 0, before)
		require.EqualValues(t, 123, after)
	}
}
