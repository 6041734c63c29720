//go:build interleave

package interleave

import "time"

// calendar has what happens at a time.
type calendar struct {
	dues   []due
	end    int
	stalls int // of dues

	endedAt  time.Time // when the first task ended
	advances int       // how often the clock has advanced since
	waited   int       // 1 + the pick before which it has waited for what it does not know
}

// due is what happens at a time: a timer fires, the tasks of a label go on, or a context ends.
type due struct {
	timer   *Timer
	at      time.Time // of what is no timer
	stalled string
}

// time returns when it happens.
//
//go:norace
func (d *due) time() (at time.Time, isDue bool) {
	if d.timer != nil {
		return d.timer.due, d.timer.isArmed
	}
	return d.at, true
}

//go:norace
func (c *calendar) add(d due) {
	if c.end == len(c.dues) {
		c.forget(time.Now())
		c.dues = grow(c.dues, c.end)
	}
	for i := range c.dues[:c.end] {
		if d.timer != nil && c.dues[i].timer == d.timer {
			return
		}
	}

	c.dues[c.end] = d
	c.end++
	if d.stalled != "" {
		c.stalls++
	}
}

// forget removes what was due until now, and timers that have fired or were stopped.
//
//go:norace
func (c *calendar) forget(now time.Time) {
	n := 0
	c.stalls = 0
	for i := range c.dues[:c.end] {
		if at, isDue := c.dues[i].time(); !isDue || c.dues[i].timer == nil && !at.After(now) {
			continue
		}

		if c.dues[i].stalled != "" {
			c.stalls++
		}
		c.dues[n] = c.dues[i]
		n++
	}
	c.end = n
}

// next returns when the next thing is due.
//
//go:norace
func (c *calendar) next() (first time.Time, ok bool) {
	for i := range c.dues[:c.end] {
		if at, isDue := c.dues[i].time(); isDue && (!ok || at.Before(first)) {
			first, ok = at, true
		}
	}
	return first, ok
}

//go:norace
func (c *calendar) isStalled(label string) bool {
	if c.stalls == 0 {
		return false
	}
	for i := range c.dues[:c.end] {
		if c.dues[i].stalled == label && label != "" {
			return true
		}
	}
	return false
}

// canAdvance reports whether something is due. Once the program has ended it has to be due soon.
//
//go:norace
func (c *calendar) canAdvance() bool {
	at, ok := c.next()
	return ok && (c.endedAt.IsZero() || c.advances < 64 && at.Sub(c.endedAt) <= time.Minute)
}

// canWait reports whether something that the calendar does not know may be due, such as a context
// that the program has made.
//
//go:norace
func (c *calendar) canWait(picks int) bool { return c.endedAt.IsZero() && c.waited != picks+1 }

// advance advances the clock to what is due next.
//
//go:norace
func (c *calendar) advance(picks int) {
	if !c.endedAt.IsZero() {
		c.advances++
	}
	at, ok := c.next()
	if !ok {
		c.waited = picks + 1
		at = time.Now().Add(24 * time.Hour)
	}
	if wait := time.Until(at); wait > 0 {
		running.sleep(wait) // contexts end in it
	}

	now := time.Now()
	for i := range c.dues[:c.end] {
		if t := c.dues[i].timer; t != nil && t.isArmed && !t.due.After(now) {
			t.fire()
		}
	}
	c.forget(now)
}
