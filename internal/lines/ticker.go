package lines

import (
	"sync"
	"time"
)

// Eight ticks make a timeout. A call can begin anywhere between two ticks, so
// the ninth within it is the first that proves that its time is over, and the
// fifth the first that proves half of it.
const (
	ticksPerTimeout = 8
	warnTick        = ticksPerTimeout/2 + 1
	timeoutTick     = ticksPerTimeout + 1
)

// ticker calls tick every period until it is stopped. It stands in for clocks: a
// wait counts ticks and never asks for the time.
type ticker struct {
	mu      sync.Mutex
	timer   *time.Timer
	period  time.Duration
	stopped bool
}

func startTicker(timeout time.Duration, tick func()) *ticker {
	t := &ticker{period: max(timeout/ticksPerTimeout, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(t.period, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.stopped {
			return
		}
		tick()
		t.timer.Reset(t.period)
	})
	return t
}

func (t *ticker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}
