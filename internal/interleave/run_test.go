//go:build interleave

package interleave

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// lose is a program with a lost update.
func lose(lost *int) func() {
	return func() {
		var n Int64
		var g WaitGroup
		for range 3 {
			g.Go(func() { n.Store(n.Load() + 1) })
		}
		g.Wait()
		if n.Load() < 3 {
			*lost++
		}
	}
}

// Seeds find a lost update, and the same seed makes the same choices.
func TestSeeds(t *testing.T) {
	lost := 0
	for seed := range uint64(200) {
		first := Run(t, Options{Seed: seed}, lose(&lost))
		require.Nil(t, first.Finding)
		was := lost
		again := Run(t, Options{Seed: seed}, lose(&lost))
		require.Equal(t, first, again)
		require.Contains(t, []int{2 * was, 2*was - 1, lost}, lost)
	}
	require.Greater(t, lost, 20)
	require.Less(t, lost, 380)
}

// A wait that can never end is found at once, and says what each goroutine waits for.
func TestStandstill(t *testing.T) {
	found := 0
	for seed := range uint64(200) {
		r := Run(t, Options{Seed: seed}, func() {
			var a, b Mutex
			var g WaitGroup
			g.Go(func() { a.Lock(); b.Lock(); b.Unlock(); a.Unlock() })
			g.Go(func() { b.Lock(); a.Lock(); a.Unlock(); b.Unlock() })
			g.Wait()
		})
		if r.Finding != nil {
			found++
			require.Equal(t, Standstill, r.Finding.Kind)
			require.Len(t, r.Finding.Tasks, 3)
		}
	}
	require.Greater(t, found, 5)
	require.Less(t, found, 180)
}

// Time passes when nothing else can.
func TestClock(t *testing.T) {
	r := Run(t, Options{Seed: 1}, func() {
		start := time.Now()
		var n Int64
		timer := AfterFunc(time.Hour, func() { n.Add(1) })
		Sleep(2 * time.Hour)
		if n.Load() != 1 || time.Since(start) != 2*time.Hour {
			panic("wrong")
		}
		timer.Reset(time.Hour)
		timer.Stop()
	})
	require.Nil(t, r.Finding)

	r = Run(t, Options{Seed: 1}, func() { AfterFunc(time.Hour, func() {}) })
	require.NotNil(t, r.Finding)
	require.Equal(t, Leak, r.Finding.Kind)
}

// A goroutine that polls goes on when its word changes, and else when its poll is ended.
func TestPoll(t *testing.T) {
	ended, seen := 0, 0
	for seed := range uint64(100) {
		r := Run(t, Options{Seed: seed}, func() {
			var word Uint64
			Go(func() {
				for range 20 {
					word.Load()
				}
				word.Store(1)
			})
			for word.Load() == 0 {
				if PollEnds() {
					ended++
					return
				}
			}
			seen++
		})
		require.Nil(t, r.Finding)
	}
	require.Greater(t, seen, 50)
	require.Greater(t, ended, 3)
}

// A step is cheap where no other goroutine goes on, and costs a hand-over where one does, which one
// processor makes cheaper.
func TestSpeed(t *testing.T) {
	for _, switches := range []int{1 << 30, 1} {
		for _, processors := range []int{1, 2} {
			s := newScheduler(&Options{Limit: 10_000_000})
			s.choose = &walk{switches: switches}
			before := runtime.GOMAXPROCS(processors)
			start := time.Now()
			synctest.Test(t, func(*testing.T) { s.run(addOften) })
			took := time.Since(start)
			runtime.GOMAXPROCS(before)

			require.Nil(t, s.finding)
			t.Logf("a switch once in %d steps, %d processors: %v a step", switches, processors, took/time.Duration(s.steps))
		}
	}
}

// addOften takes many steps.
func addOften() {
	var n Int64
	var g WaitGroup
	for range 4 {
		g.Go(func() {
			for range 50_000 {
				n.Add(1)
			}
		})
	}
	g.Wait()
}
