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
	if s := running; s != nil {
		return int64(s.steps)
	}
	return time.Now().UnixNano()
}

// Compute takes steps instead of time, one for 100 ns.
func Compute(d time.Duration) {
	if !isOn() {
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

	c      chan time.Time
	f      func()  // nil: it sends to c
	expiry *expiry // the goroutine that will call f waits for it; nil: there is none
}

// expiry is the condition that a timer has fired.
type expiry struct{ hasFired bool }

//go:norace
func (e *expiry) isTrue() bool { return e.hasFired }

// AfterFunc calls f in a goroutine of its own once d has passed.
func AfterFunc(d time.Duration, f func()) *Timer {
	s := known()
	if s == nil {
		return &Timer{real: time.AfterFunc(d, f)}
	}
	t := &Timer{s: s, label: s.label(), f: f}
	t.arm(d)
	return t
}

// NewTimer returns a timer that sends to its channel once d has passed.
func NewTimer(d time.Duration) *Timer {
	s := known()
	if s == nil {
		t := time.NewTimer(d)
		return &Timer{real: t, C: t.C}
	}
	t := &Timer{s: s, label: s.label(), c: make(chan time.Time, 1)}
	t.C = t.c
	t.arm(d)
	return t
}

//go:norace
func (s *scheduler) label() string { return s.current.label }

// After returns the channel of a new timer.
func After(d time.Duration) <-chan time.Time { return NewTimer(d).C }

//go:norace
func (t *Timer) arm(d time.Duration) {
	t.due, t.isArmed = time.Now().Add(d), true
	t.s.calendar.add(due{timer: t})
	if t.f == nil {
		return
	}

	if t.expiry == nil {
		t.expiry = &expiry{}
		t.wait()
	}
	release(t.expiry)
}

// wait starts the goroutine that calls the timer's function when it fires the next time.
func (t *Timer) wait() {
	e := t.expiry
	t.s.start("its timer", true, func() {
		t.s.block(e, "its timer")
		acquire(e)
		t.s.setForeground()
		t.f()
	})
}

// setForeground lets the running task count as one that the program has to end.
//
//go:norace
func (s *scheduler) setForeground() { s.current.isBackground = false }

// fire is for the goroutine that has advanced the clock.
//
//go:norace
func (t *Timer) fire() {
	t.isArmed = false
	if t.f != nil {
		t.expiry.hasFired = true
		t.expiry = nil
		return
	}

	hideFromRaceDetector()
	select {
	case t.c <- t.due:
	default:
	}
	showToRaceDetector()
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
		hideFromRaceDetector()
		<-t.c
		showToRaceDetector()
		return true
	}
	return wasArmed
}

// Sleep returns once d has passed.
func Sleep(d time.Duration) {
	if !isOn() {
		time.Sleep(d)
		return
	}
	Receive(After(d))
}

// WithTimeout is context.WithTimeout.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	s := known()
	if s == nil {
		return context.WithTimeout(ctx, d)
	}
	s.calendar.add(due{at: time.Now().Add(d)})
	late, cancel := context.WithTimeout(ctx, d)
	return late, func() {
		step()
		cancel()
	}
}

// AfterContext calls f in a goroutine of its own once ctx has ended, unless stop is called before.
func AfterContext(ctx context.Context, f func()) (stop func() bool) {
	s := known()
	if s == nil {
		return context.AfterFunc(ctx, f)
	}
	w := &afterContext{done: ctx.Done()}
	if w.done == nil {
		return w.stop
	}

	s.start("the end of a context", true, func() {
		s.block(w, "the end of a context")
		if w.begin(s) {
			<-w.done // f comes after the end
			f()
		}
	})
	return w.stop
}

// afterContext is the condition that a context has ended, or that nobody wants to know.
type afterContext struct {
	done       <-chan struct{}
	wasStopped bool
}

//go:norace
func (w *afterContext) isTrue() bool { return w.wasStopped || isOpen(w.done) }

// awaitsContext reports whether the task waits for the end of a context that may still come, though
// its rank does not stand still.
//
//go:norace
func (t *task) awaitsContext() bool {
	_, ok := t.until.(*afterContext)
	return ok && !t.s.calendar.isStalled(t.label)
}

//go:norace
func (w *afterContext) begin(s *scheduler) bool {
	s.current.isBackground = w.wasStopped
	return !w.wasStopped
}

// stop reports false if the context has ended: package context has started the goroutine then.
//
//go:norace
func (w *afterContext) stop() bool {
	step()
	hideFromRaceDetector()
	isLate := w.isTrue()
	showToRaceDetector()
	if isLate {
		return false
	}
	w.wasStopped = true
	return true
}
