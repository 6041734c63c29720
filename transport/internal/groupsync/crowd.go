package groupsync

import (
	"runtime/metrics"
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

// crowd knows how many goroutines of this process wait for a processor. All ranks that poll share
// one.
//
// One rank counts at a time, and the others take its count: the Go runtime has a lock for its
// counters, and goroutines that wait for it sleep. Eight ranks that counted for themselves kept
// each other from polling.
type crowd struct {
	isCounting interleave.Bool
	counted    interleave.Int64  // when, as a time of clock
	size       interleave.Uint64 // by the last count
	samples    [3]metrics.Sample
}

// processors is the crowd of this process.
var processors = crowd{samples: [3]metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"},
	{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/gomaxprocs:threads"}}}

// count returns how many goroutines are ready to run and find all processors busy, by a count
// that is at most about countEvery old while ranks poll. now is the time of clock.
func (c *crowd) count(now time.Duration) uint64 {
	age := now - time.Duration(c.counted.Load())
	if (age < 0 || age >= countEvery) && c.isCounting.CompareAndSwap(false, true) {
		c.size.Store(countWaiting(&c.samples))
		c.counted.Store(int64(now))
		c.isCounting.Store(false)
	}
	return c.size.Load()
}

// countWaiting returns how many goroutines of this process are ready to run and find all processors
// busy, in 0.2 us. A goroutine that was woken while a processor is idle does not count: it will
// soon run there. Tests replace it.
var countWaiting = func(samples *[3]metrics.Sample) uint64 {
	return interleave.Fact(func() uint64 {
		metrics.Read(samples[:])
		runnable, running, all := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
		if running < all {
			return 0
		}
		return runnable
	}, 0)
}
