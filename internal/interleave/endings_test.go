//go:build interleave

package interleave

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// endings are programs that come to a standstill. Their goroutines are ended: what they have
// deferred must not wait.
var endings = map[string]func(){
	"a lock": func() {
		var a, b Mutex
		Go(func() {
			a.Lock()
			defer a.Unlock()
			Receive(never)
		})
		Go(func() {
			b.Lock()
			defer b.Unlock()
			defer a.Lock()
			Receive(never)
		})
	},
	"a condition": func() {
		var m Mutex
		c := Cond{L: &m}
		Go(func() {
			defer Receive(never)
			m.Lock()
			defer m.Unlock()
			c.Wait()
		})
		Go(func() {
			m.Lock()
			defer m.Unlock()
			defer c.Broadcast()
			defer c.Wait()
			c.Wait()
		})
	},
	"a group": func() {
		var g WaitGroup
		defer g.Wait()
		g.Go(func() { Receive(never) })
		g.Go(func() {
			defer g.Go(func() {})
			Receive(never)
		})
	},
	"a reader": func() {
		var m RWMutex
		m.RLock()
		Go(func() {
			m.Lock()
			defer m.Unlock()
		})
		defer m.RLock()
		Sleep(time.Second)
		m.RLock()
	},
	"a poll": func() {
		var word Uint32
		defer func() {
			for word.Load() == 0 {
				PollEnds()
			}
		}()
		defer func() {
			for word.Load() == 0 {
			}
		}()
		Receive(never)
	},
	"timers": func() {
		timer := AfterFunc(time.Hour, func() {})
		timer.Stop()
		defer Sleep(time.Second)
		defer First(never, After(time.Second))
		defer AfterFunc(time.Second, func() {})
		defer timer.Reset(time.Second)
		defer AfterContext(context.Background(), func() {})
		defer Compute(time.Microsecond)
		Receive(never)
	},
	"a lock of the package": func() {
		shared.Lock()
		sharedRW.RLock()
		once.Do(func() { Receive(never) })
	},
}

var (
	shared   Mutex
	sharedRW RWMutex
	once     Once
	never    chan struct{}
)

// A standstill ends all goroutines, whatever they have deferred, and leaves locks free.
func TestEndings(t *testing.T) {
	for name, program := range endings {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(40) {
				r := Run(t, Options{Seed: seed}, func() {
					program()
					Receive(never)
				})
				require.NotNil(t, r.Finding)
				require.Equal(t, Standstill, r.Finding.Kind)
				require.False(t, isOn())
			}
		})
	}

	r := Run(t, Options{}, func() {
		shared.Lock()
		sharedRW.Lock()
		sharedRW.Unlock()
		shared.Unlock()
		hasRun := false
		once.Do(func() { hasRun = true })
		if !hasRun {
			panic("once")
		}
	})
	require.Nil(t, r.Finding)
	shared.Lock()
	shared.Unlock()
	sharedRW.Lock()
	sharedRW.Unlock()
	once = Once{}
}

// A panic of any goroutine is found, and ends the others. Goexit is none, except of the program.
func TestPanics(t *testing.T) {
	for seed := range uint64(40) {
		r := Run(t, Options{Seed: seed}, func() {
			Go(func() { Sleep(time.Second); panic("early") })
			Receive(never)
		})
		require.Equal(t, Panic, r.Finding.Kind)
		require.Contains(t, r.Finding.Text, "early")

		r = Run(t, Options{Seed: seed}, func() {
			var m Mutex
			m.Unlock()
		})
		require.Equal(t, Panic, r.Finding.Kind)

		r = Run(t, Options{Seed: seed}, func() { Go(runtime.Goexit) })
		require.Nil(t, r.Finding)
		r = Run(t, Options{Seed: seed}, runtime.Goexit)
		require.Equal(t, Panic, r.Finding.Kind)

		r = Run(t, Options{Seed: seed}, func() {
			Go(func() { Receive(never) })
		})
		require.Equal(t, Leak, r.Finding.Kind)
		r = Run(t, Options{Seed: seed, Limit: 100}, func() {
			var word Uint32
			for word.Load() == 0 {
			}
		})
		require.Equal(t, Endless, r.Finding.Kind)
	}
}

// A program may start many goroutines and timers, one after the other.
func TestMany(t *testing.T) {
	r := Run(t, Options{Seed: 1}, func() {
		for range 3 * most {
			var g WaitGroup
			g.Go(func() {})
			g.Wait()
		}
		for range most {
			AfterFunc(time.Second, func() {})
			Sleep(2 * time.Second)
		}
	})
	require.Nil(t, r.Finding)

	r = Run(t, Options{Seed: 1}, func() {
		var timers []*Timer
		for range 100 {
			timers = append(timers, NewTimer(0))
		}
		for _, timer := range timers {
			Receive(timer.C)
		}
	})
	require.Nil(t, r.Finding)
}

// A standstill says who holds what is waited for.
func TestHolder(t *testing.T) {
	r := Run(t, Options{IsTraced: true}, func() {
		var m Mutex
		Go(func() {
			SetLabel("rank 7")
			m.Lock()
			Receive(never)
		})
		Sleep(time.Second)
		m.Lock()
	})
	require.Equal(t, Standstill, r.Finding.Kind)
	require.Len(t, r.Finding.Tasks, 2)
	require.Contains(t, r.Finding.Tasks[0], "waits for a lock that goroutine 1 of rank 7 holds, Mutex.Lock at interleave/endings_test.go:")
	require.Contains(t, r.Finding.Tasks[1], "goroutine 1 of rank 7 waits for a channel, Receive at interleave/endings_test.go:")
}
