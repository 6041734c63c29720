package groupsync

import (
	"sync"
	"time"
)

// Sixteen ticks make a timeout. A call can begin anywhere between two ticks, so the
// seventeenth within it is the first that proves that its time is over, and the ninth the
// first that proves half of it: a timeout is a sixteenth late at most, beside what the
// scheduler takes.
const (
	ticksPerTimeout = 16
	warnTick        = ticksPerTimeout/2 + 1
	timeoutTick     = ticksPerTimeout + 1
)

// ticker calls tick every period until it is stopped. It stands in for clocks: a wait
// counts ticks and never asks for the time. Ticks that a stopped process has missed do not
// count: it has not waited.
type ticker struct {
	mu      sync.Mutex
	timer   *time.Timer
	period  time.Duration
	next    time.Time
	stopped bool
}

func startTicker(timeout time.Duration, tick func()) *ticker {
	t := &ticker{period: max(timeout/ticksPerTimeout, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = time.Now().Add(t.period)
	t.timer = time.AfterFunc(t.period, func() {
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

// untilNext returns when the next tick is due, after one at now: what that came late does
// not add up, unless it has missed the next.
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
