package spin

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// WakeTime returns how long a sleeping goroutine takes to run after a goroutine that goes on
// polling has woken it. It measures several wake-ups once, in about a millisecond, and returns the
// shortest, because other work on the machine only makes them longer. With one processor it
// returns 0. WakeTime may be called concurrently.
var WakeTime = sync.OnceValue(func() time.Duration {
	if runtime.GOMAXPROCS(0) < 2 {
		return 0
	}
	var (
		times [7]time.Duration
		ran   atomic.Int32
		token = make(chan time.Time, 1)
	)
	go func() {
		for i := range times {
			times[i] = time.Since(<-token)
			ran.Add(1)
		}
	}()
	for i := range times {
		time.Sleep(100 * time.Microsecond) // until its thread sleeps as well
		token <- time.Now()
		for ran.Load() <= int32(i) {
			Pause()
		}
	}
	return slices.Min(times[:])
})
