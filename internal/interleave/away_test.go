//go:build interleave

package interleave

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// foreign are programs that wait for things of the standard library.
var foreign = map[string]func() []any{
	"a channel": func() (got []any) {
		c, done := make(chan int), make(chan struct{})
		var word Int64
		Go(func() {
			for i := range 3 {
				word.Add(1)
				c <- i
			}
			close(c)
		})
		Go(func() {
			for i := range c {
				got = append(got, i)
				word.Add(1)
			}
			close(done)
		})
		<-done
		return append(got, word.Load())
	},
	"a channel that a timer of this package feeds": func() []any {
		c := make(chan int)
		start := time.Now()
		Go(func() { Sleep(time.Minute); c <- 1 })
		return []any{<-c, time.Since(start)}
	},
	"a group": func() []any {
		var word Int64
		var g sync.WaitGroup
		g.Add(2)
		for range 2 {
			Go(func() { defer g.Done(); word.Add(1) })
		}
		g.Wait()
		return []any{word.Load()}
	},
	"sleeps": func() (got []any) {
		start := time.Now()
		var g WaitGroup
		var m sync.Mutex
		note := func() {
			m.Lock()
			defer m.Unlock()
			got = append(got, time.Since(start))
		}
		g.Go(func() { time.Sleep(2 * time.Second); note(); time.Sleep(2 * time.Second); note() })
		g.Go(func() { Sleep(time.Second); note(); Sleep(2 * time.Second); note() })
		g.Wait()
		return got
	},
	"a context": func() []any {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		Go(func() { <-ctx.Done() })
		<-ctx.Done()
		return []any{ctx.Err()}
	},
	"goroutines of the program": func() (got []any) {
		c := make(chan int, 1)
		var word Int64
		go func() {
			for i := range 3 {
				time.Sleep(time.Second)
				c <- i
			}
			close(c)
		}()
		for i := range c {
			word.Add(1)
			got = append(got, i)
		}
		return append(got, word.Load())
	},
	"a lock that nobody holds at a step": func() []any {
		var m sync.Mutex
		n := 0
		var word Int64
		var g WaitGroup
		for range 3 {
			g.Go(func() {
				word.Add(1)
				m.Lock()
				n++
				m.Unlock()
				word.Add(1)
			})
		}
		g.Wait()
		return []any{n}
	},
}

// A program may wait for things of the standard library, also for what another goroutine does there.
// Its steps are those of the seed all the same.
func TestForeignWaits(t *testing.T) {
	for name, program := range foreign {
		t.Run(name, func(t *testing.T) {
			var want []any
			for seed := range uint64(40) {
				var got []any
				run := func() uint64 {
					r := Run(t, Options{Seed: seed}, func() { got = program() })
					require.Nil(t, r.Finding)
					return r.Hash
				}

				require.Equal(t, run(), run())
				if seed == 0 {
					want = got
				}
				require.Equal(t, want, got, "seed %d", seed)
			}
		})
	}
}

// Goroutines that wait for each other by channels of the program, or are left at its end, are found.
func TestForeignStandstill(t *testing.T) {
	for range 2 {
		r := Run(t, Options{}, func() {
			c := make(chan int)
			Go(func() { <-c })
			Go(func() { Receive(never) })
			<-c
		})
		require.Equal(t, Standstill, r.Finding.Kind)
		require.Len(t, r.Finding.Tasks, 3)
		require.Contains(t, r.Finding.Tasks[0], "goroutine 0 waits outside of goccl")
		require.Len(t, r.Finding.Goroutines, 3)

		r = Run(t, Options{}, func() { go func() { <-make(chan int) }() })
		require.Equal(t, Leak, r.Finding.Kind)
		require.Contains(t, r.Finding.Stacks, "away_test.go")

		r = Run(t, Options{}, func() {
			var g sync.WaitGroup
			g.Add(1)
			Go(func() { defer g.Done(); Receive(never) })
			defer g.Wait() // for a goroutine that is ended later
			Receive(never)
		})
		require.Equal(t, Standstill, r.Finding.Kind)
	}
}

// A lock of package sync that a goroutine holds at a step is found, and the next program runs.
func TestForeignLock(t *testing.T) {
	defer func(before time.Duration) { lockPatience = before }(lockPatience)
	lockPatience = 100 * time.Millisecond
	for range 2 {
		r := Run(t, Options{}, func() {
			SetLabel("rank 3")
			var m sync.Mutex
			m.Lock()
			m.Lock()
		})
		require.Equal(t, Blocked, r.Finding.Kind)
		require.Equal(t, "goroutine 0 of rank 3 (sync.Mutex.Lock)", r.Finding.Text)
		require.Contains(t, r.Finding.Stacks, "away_test.go")
		require.False(t, isOn())
	}
}

// So is a goroutine that waits in a loop, without steps, for another one.
func TestBusy(t *testing.T) {
	defer func(before time.Duration) { patience = before }(patience)
	patience = 200 * time.Millisecond
	var word, isOver atomic.Bool
	r := Run(t, Options{}, func() {
		Go(func() { word.Store(true) })
		for !word.Load() && !isOver.Load() {
		}
	})
	isOver.Store(true)
	require.Equal(t, Busy, r.Finding.Kind)
	require.True(t, r.Finding.Goroutines[0].IsNext)
}

// A goroutine that the program has started by itself may not call this package.
func TestStranger(t *testing.T) {
	for seed := range uint64(40) {
		r := Run(t, Options{Seed: seed}, func() {
			var word Int64
			done := make(chan struct{})
			go func() {
				defer close(done)
				word.Add(1)
			}()
			word.Add(1)
			<-done
		})
		require.Equal(t, Stranger, r.Finding.Kind)
		require.Contains(t, r.Finding.Stack, "away_test.go")
	}
}

// What runs beside a program and calls this package ends with a panic that says so. The child process
// is this test as well.
func TestBeside(t *testing.T) {
	if os.Getenv("INTERLEAVE_BESIDE") != "" {
		begin := make(chan struct{})
		go func() {
			<-begin
			var word Int64
			word.Add(1)
		}()
		Run(t, Options{Limit: 1 << 60}, func() {
			close(begin)
			var word Int64
			for {
				word.Add(1)
			}
		})
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestBeside$")
	child.Env = append(os.Environ(), "INTERLEAVE_BESIDE=1")
	out, err := child.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "TestBeside, which a seed orders, runs beside this goroutine, which calls goccl as well")
}
