//go:build interleave

package interleave

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// What a program does behind a store is seen to come later, in some seeds.
func TestStepAfterStore(t *testing.T) {
	// No other step is between the two.
	isFound := false
	for seed := uint64(0); seed < 100 && !isFound; seed++ {
		Run(t, Options{Seed: seed}, func() {
			var isThere Bool
			var plain atomic.Bool // no step
			var all WaitGroup
			all.Go(func() {
				isThere.Store(true)
				plain.Store(true)
			})
			all.Go(func() { isFound = isFound || isThere.Load() && !plain.Load() })
			all.Wait()
		})
	}
	if !isFound {
		t.Error("no seed shows the store without the plain one that follows it")
	}
}

// Who waits for the end of a context and never stops doing so is a leak, unless its rank stands
// still.
func TestContextIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		isStopped, isStalled bool
		want                 Kind
	}{
		"left":             {false, false, Leak},
		"stopped":          {true, false, ""},
		"stopped, stalled": {true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := Run(t, Options{Seed: 1}, func() {
				ctx, cancel := context.WithCancel(context.Background())
				_ = cancel // it goes on
				var stop func() bool
				var all WaitGroup
				all.Go(func() {
					SetLabel("rank 0")
					stop = AfterContext(ctx, func() {})
				})
				all.Wait()
				if c.isStalled {
					Stall("rank 0", time.Hour)
				}
				if c.isStopped {
					stop()
				}
			})
			got := Kind("")
			if r.Finding != nil {
				got = r.Finding.Kind
			}
			if got != c.want {
				t.Errorf("%q instead of %q", got, c.want)
			}
		})
	}
}

// The clock also advances early where tasks have priorities.
func TestPrioritiesAreLate(t *testing.T) {
	const seed = 3 // of priorities
	r := Run(t, Options{Seed: seed, IsLate: true}, func() {
		timer := NewTimer(time.Second)
		for range 100_000 {
			step()
			if len(timer.C) > 0 {
				return
			}
		}
		panic("no second has passed")
	})
	if r.Finding != nil {
		t.Error(r.Finding)
	}
}
