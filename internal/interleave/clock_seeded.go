//go:build interleave

package interleave

import (
	"context"
	"time"
)

// Moment returns the number of steps so far.
//
//go:norace
func Moment() int64 {
	if s := active(); s != nil {
		return int64(s.steps)
	}
	return time.Now().UnixNano()
}

// Compute takes steps instead of time, one for 100 ns.
func Compute(d time.Duration) {
	if active() == nil {
		time.Sleep(d)
		return
	}
	for range d / (100 * time.Nanosecond) {
		step()
	}
}

// Timer is a time.Timer. Its function runs in a goroutine that belongs to the program.
type Timer struct {
	C    <-chan time.Time
	real *time.Timer // outside of Run

	s       *scheduler
	label   string
	due     time.Time
	isArmed bool
	fired   uint64 // how often
	ran     uint64 // how often its function has begun
	c       chan time.Time
}

// AfterFunc calls f in a goroutine of its own once d has passed.
func AfterFunc(d time.Duration, f func()) *Timer {
	s := active()
	if s == nil {
		return &Timer{real: time.AfterFunc(d, f)}
	}
	t := &Timer{s: s, label: s.current.label}

	s.start("a timer", true, func() {
		for {
			s.block((*firing)(t), "its timer")
			t.ran++
			f()
		}
	})
	t.arm(d)
	return t
}

type firing Timer

//go:norace
func (t *firing) isTrue() bool { return t.fired > t.ran }

// NewTimer returns a timer that sends to its channel once d has passed.
func NewTimer(d time.Duration) *Timer {
	s := active()
	if s == nil {
		t := time.NewTimer(d)
		return &Timer{real: t, C: t.C}
	}
	t := &Timer{s: s, label: s.current.label, c: make(chan time.Time, 1)}
	t.C = t.c
	t.arm(d)
	return t
}

// After returns the channel of a new timer.
func After(d time.Duration) <-chan time.Time { return NewTimer(d).C }

//go:norace
func (t *Timer) arm(d time.Duration) {
	t.due, t.isArmed = time.Now().Add(d), true
	t.s.calendar.add(due{timer: t})
}

// fire is for the goroutine that has advanced the clock.
//
//go:norace
func (t *Timer) fire() {
	t.isArmed = false
	if t.c == nil {
		t.fired++
		return
	}
	select {
	case t.c <- t.due:
	default:
	}
}

// Stop is time.Timer's.
func (t *Timer) Stop() bool {
	if t.real != nil {
		return t.real.Stop()
	}
	step()
	return t.disarm()
}

// Reset is time.Timer's.
func (t *Timer) Reset(d time.Duration) bool {
	if t.real != nil {
		return t.real.Reset(d)
	}
	step()
	wasArmed := t.disarm()
	t.arm(d)
	return wasArmed
}

// disarm also takes back what the timer has sent and nobody received, as package time does.
//
//go:norace
func (t *Timer) disarm() (wasArmed bool) {
	wasArmed, t.isArmed = t.isArmed, false
	if t.c != nil && len(t.c) > 0 {
		<-t.c
		return true
	}
	return wasArmed
}

// Sleep returns once d has passed.
func Sleep(d time.Duration) {
	if active() == nil {
		time.Sleep(d)
		return
	}
	Receive(After(d))
}

// WithTimeout is context.WithTimeout.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if s := active(); s != nil {
		s.calendar.add(due{at: time.Now().Add(d)})
	}
	return context.WithTimeout(ctx, d)
}

// AfterContext calls f in a goroutine of its own once ctx has ended, unless stop is called before.
func AfterContext(ctx context.Context, f func()) (stop func() bool) {
	s := active()
	if s == nil {
		return context.AfterFunc(ctx, f)
	}
	if ctx.Done() == nil {
		return func() bool { return true }
	}

	w := &afterContext{done: ctx.Done()}
	s.start("the end of a context", true, func() {
		s.block(w, "the end of a context")
		if w.begin() {
			f()
		}
	})
	return w.stop
}

// afterContext is the condition that a context has ended, or that nobody wants to know.
type afterContext struct {
	done               <-chan struct{}
	hasBegun, hasEnded bool
}

//go:norace
func (w *afterContext) isTrue() bool { return w.hasEnded || isOpen(w.done) }

//go:norace
func (w *afterContext) begin() bool {
	w.hasBegun = !w.hasEnded
	return w.hasBegun
}

//go:norace
func (w *afterContext) stop() bool {
	step()
	wasWaiting := !w.hasBegun && !w.hasEnded
	w.hasEnded = true
	return wasWaiting
}
