package groupsync

import (
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

// A timeout lasts sixteen ticks. A call can start anywhere between two ticks. Its 17th tick is
// therefore the first that proves that its time is over, and its ninth the first that proves
// that half of it is. A timeout comes at most one sixteenth late, plus scheduling delays.
const (
	ticksPerTimeout = 16
	warnTick        = ticksPerTimeout/2 + 1
	timeoutTick     = ticksPerTimeout + 1
)

// ticker calls tick every period until it is stopped. A wait counts ticks instead of reading
// the clock. Ticks that a stopped process misses do not count, because it was not waiting.
type ticker struct {
	mu      interleave.Mutex
	timer   *interleave.Timer
	period  time.Duration
	next    time.Time
	stopped bool
}

func newTicker(timeout time.Duration, tick func()) *ticker {
	t := &ticker{period: max(timeout/ticksPerTimeout, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()

	t.next = time.Now().Add(t.period)
	t.timer = interleave.AfterFunc(t.period, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.stopped {
			return
		}
		tick()
		t.timer.Reset(t.untilNext(time.Now()))
	})
	return t
}

// untilNext returns the time until the next tick, after one at now. Delays do not add up,
// unless a tick comes after the next was due.
func (t *ticker) untilNext(now time.Time) time.Duration {
	t.next = t.next.Add(t.period)
	if t.next.Before(now) {
		t.next = now.Add(t.period)
	}
	return t.next.Sub(now)
}

func (t *ticker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}
