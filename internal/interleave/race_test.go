//go:build interleave

package interleave

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// racy are programs in which only the order of steps orders what two goroutines do to x.
var racy = map[string]func(x *int){
	"nothing": func(x *int) {
		Go(func() { *x = 1 })
		*x = 2
	},
	"words of their own": func(x *int) {
		var a, b Uint64
		Go(func() { a.Add(1); *x = 1; a.Add(1) })
		b.Add(1)
		*x = 2
		b.Add(1)
	},
	"time": func(x *int) {
		Go(func() { *x = 1 })
		Sleep(time.Second)
		*x = 2
	},
	"two calls of a timer's function": func(x *int) {
		timer := AfterFunc(time.Second, func() { *x++ })
		Sleep(2 * time.Second)
		timer.Reset(time.Second)
		Sleep(2 * time.Second)
	},
	"two timers": func(x *int) {
		a, b := NewTimer(time.Second), NewTimer(2*time.Second)
		Go(func() { Receive(a.C); *x = 1 })
		Receive(b.C)
		*x = 2
	},
	"two signals": func(x *int) {
		c := Cond{L: &Mutex{}}
		Go(func() { *x = 1; c.Signal() })
		c.Signal()
		*x = 2
	},
	"two members of a group": func(x *int) {
		var g WaitGroup
		g.Go(func() { *x = 1 })
		g.Go(func() { *x = 2 })
		g.Wait()
	},
	"readers of a lock": func(x *int) {
		var m RWMutex
		Go(func() { m.RLock(); *x = 1; m.RUnlock() })
		m.RLock()
		*x = 2
		m.RUnlock()
	},
	"a channel that was closed, and not received from": func(x *int) {
		a, b := make(chan struct{}), make(chan struct{}, 1)
		b <- struct{}{}
		Go(func() { *x = 1; close(a) })
		Sleep(time.Second)
		if First(a, b) == 1 {
			*x = 2
		}
	},
}

// ordered are programs that order what their goroutines do to x.
var ordered = map[string]func(x *int){
	"go": func(x *int) {
		*x = 1
		Go(func() { *x = 2 })
	},
	"a lock": func(x *int) {
		var m Mutex
		for range 2 {
			Go(func() { m.Lock(); *x++; m.Unlock() })
		}
	},
	"a lock for readers": func(x *int) {
		var m RWMutex
		for range 2 {
			Go(func() { m.Lock(); *x++; m.Unlock() })
			Go(func() { m.RLock(); _ = *x; m.RUnlock() })
		}
	},
	"a word": func(x *int) {
		var word Uint32
		Go(func() { *x = 1; word.Store(1) })
		for word.Load() == 0 && !PollEnds() {
		}
		if word.Load() == 1 {
			*x = 2
		}
	},
	"a pointer": func(x *int) {
		var word Pointer[int]
		Go(func() { *x = 1; word.Store(x) })
		Sleep(time.Second)
		*word.Load() = 2
	},
	"a channel": func(x *int) {
		c, closed := make(chan struct{}, 1), make(chan struct{})
		Go(func() { *x = 1; c <- struct{}{} })
		Go(func() { Receive(c); *x = 2; close(closed) })
		First(closed, After(time.Hour))
		*x = 3
	},
	"a group": func(x *int) {
		var g WaitGroup
		g.Go(func() { *x = 1 })
		g.Wait()
		*x = 2
	},
	"once": func(x *int) {
		var o Once
		for range 3 {
			Go(func() { o.Do(func() { *x = 1 }); _ = *x })
		}
	},
	"a condition": func(x *int) {
		var m Mutex
		c := Cond{L: &m}
		Go(func() { m.Lock(); *x = 1; m.Unlock(); c.Broadcast() })
		m.Lock()
		for *x == 0 {
			c.Wait()
		}
		m.Unlock()
	},
	"a signal": func(x *int) {
		var m Mutex
		c := Cond{L: &m}
		Go(func() { Sleep(time.Second); *x = 1; c.Signal() })
		m.Lock()
		c.Wait()
		m.Unlock()
		*x = 2
	},
	"a timer's function": func(x *int) {
		timer := AfterFunc(time.Hour, func() { *x++ })
		*x = 1
		timer.Reset(time.Second)
	},
	"the end of a context": func(x *int) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		AfterContext(ctx, func() { *x = 2; close(ended) })
		Go(func() { *x = 1; cancel() })
		Receive(ended)
		*x = 3
	},
}

var raceProgram = flag.String("race-program", "", "the program that TestRaceProgram runs")

// TestRaceProgram is the child of TestRaces.
func TestRaceProgram(t *testing.T) {
	program := racy[*raceProgram]
	if program == nil {
		program = ordered[*raceProgram]
	}
	if program == nil {
		t.Skip("a child of TestRaces")
	}
	for seed := range uint64(20) {
		x := new(int)
		r := Run(t, Options{Seed: seed}, func() {
			SetLabel("rank 7")
			program(x)
		})
		if r.Finding != nil {
			require.Equal(t, Race, r.Finding.Kind)
			t.Fatal(r.Finding)
		}
	}
}

// The race detector sees what a program orders, and nothing of the order of steps.
func TestRaces(t *testing.T) {
	if !detectsRaces {
		t.Skip("needs -race")
	}
	run := func(name string) (hasRace bool) {
		out, err := exec.Command(os.Args[0], "-test.run", "^TestRaceProgram$", "-race-program", name).CombinedOutput()
		hasRace = bytes.Contains(out, []byte("WARNING: DATA RACE"))
		require.Equal(t, hasRace, err != nil, "%s: %v\n%s", name, err, out[:min(len(out), 4000)])
		require.Equal(t, hasRace, bytes.Contains(out, []byte(string(Race)+": goroutine")) && bytes.Contains(out, []byte(" of rank 7")), "%s\n%s", name, out)
		return hasRace
	}
	for name := range racy {
		require.True(t, run(name), name)
	}
	for name := range ordered {
		require.False(t, run(name), name)
	}
}
