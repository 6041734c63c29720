//go:build interleave

package interleave

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/petermattis/goid"
)

// condition is what a task waits for. isTrue has no effect, and any task may call it.
type condition interface{ isTrue() bool }

// held is a condition that is true once a task has released something.
type held interface{ heldBy() *task }

// task is a goroutine of the program.
type task struct {
	s      *scheduler
	id     int64 // of its goroutine
	number int
	label  string        // of its rank
	what   string        // that it waits for, or that has started it
	wake   chan struct{} // holds a token if it is this task's turn
	ended  chan struct{} // closed at its end

	isBackground bool // it ends with the program
	isKilled     bool // it takes no more steps
	isAway       bool // it waits for what this package does not know
	isBack       bool // that wait has ended
	hasEnded     bool
	until        condition // nil: it can go on
	isPolling    bool
	pollIsOver   bool
	loads        [8]load // since the last turn of its poll
	loaded       int

	priority uint32 // of priorities; 0: none yet
	at       stack  // where it takes its step, if the run is traced
}

// start starts a task that belongs to the same rank as the running one. Once the program is over it
// does not.
func (s *scheduler) start(what string, isBackground bool, f func()) *task {
	t := s.add(what, isBackground)
	if !s.isEnding() {
		go t.run(f)
	}
	return t
}

// run runs in the task's goroutine.
func (t *task) run(f func()) {
	hasReturned := false
	defer t.close()
	defer func() {
		p := recover()
		t.s.settle()
		if p != nil {
			t.s.fail(&Finding{Kind: Panic, Text: fmt.Sprintf("%s panics: %v", t, p), Stack: string(stackOf())})
		} else if !hasReturned && t.number == 0 && !t.s.isEnding() {
			t.s.fail(&Finding{Kind: Panic, Text: "the program has called runtime.Goexit"})
		}
		t.s.end(t)
	}()

	debug.SetPanicOnFault(true) // memory that was given back is not there
	t.id = goid.Get()
	t.await()
	f()
	hasReturned = true
}

//go:norace
func (t *task) close() {
	t.hasEnded = true
	close(t.ended)
}

// await returns when it is the task's turn. If the program is over, it ends the goroutine.
func (t *task) await() {
	hideFromRaceDetector()
	<-t.wake
	showToRaceDetector()
	if t.s.isEnding() {
		runtime.Goexit()
	}
}

// pass makes it the task's turn.
func (t *task) pass() {
	hideFromRaceDetector()
	t.wake <- struct{}{}
	showToRaceDetector()
}

func (t *task) String() string {
	switch {
	case t == outside:
		return "a goroutine outside of Run"
	case t.label == "":
		return fmt.Sprint("goroutine ", t.number)
	}
	return fmt.Sprintf("goroutine %d of %s", t.number, t.label)
}

// isReady reports whether the task can go on.
//
//go:norace
func (t *task) isReady() bool {
	switch {
	case t.isAway || t.isKilled || t.s.calendar.isStalled(t.label):
		return false
	case t.isPolling:
		return t.hasSeenChange()
	case t.until == nil:
		return true
	}
	hideFromRaceDetector()
	isTrue := t.until.isTrue()
	showToRaceDetector()
	return isTrue
}

// pollsInVain reports whether the task polls and is not ready.
//
//go:norace
func (t *task) pollsInVain() bool {
	return t.isPolling && !t.isKilled && !t.s.calendar.isStalled(t.label)
}

// hasSeenChange reports whether a word has another value than the polling task has read. If it has
// read too many to remember, one may have.
//
//go:norace
func (t *task) hasSeenChange() bool {
	if t.loaded > len(t.loads) {
		return true
	}
	for i := range t.loads[:t.loaded] {
		if t.loads[i].read() != t.loads[i].bits {
			return true
		}
	}
	return false
}

// PollEnds is called once in each turn of a loop that reads words until they change. It waits until
// one of those that this turn has read changes, and reports whether the loop must end instead.
//
//go:norace
func PollEnds() bool {
	s := known()
	switch {
	case s == nil:
		return false
	case s.isOver:
		runtime.Goexit()
	}

	t := s.current
	t.isPolling, t.pollIsOver = true, false
	s.step()
	t.isPolling, t.loaded = false, 0
	return t.pollIsOver
}

// Step is a step that does nothing else. It comes before a send to a channel, and before its close.
func Step() { step() }

// Go starts a goroutine.
func Go(f func()) {
	s := known()
	if s == nil {
		go f()
		return
	}
	s.start("its first step", false, f)
	s.step()
}

// SetLabel names the rank to which the running goroutine belongs, and those that it starts.
//
//go:norace
func SetLabel(label string) {
	if s := known(); s != nil {
		s.current.label = label
	}
}

// describe returns whose the task is and what it waits for.
//
//go:norace
func (t *task) describe() string {
	doing := "can go on"
	switch {
	case t.isKilled:
		doing = "was killed"
	case t.isAway:
		doing = "waits outside of goccl"
	case t.isPolling:
		doing = "polls"
	case t.until != nil:
		doing = "waits for " + t.what

		if h, ok := t.until.(held); ok && h.heldBy() != nil {
			doing += " that " + h.heldBy().String() + " holds"
		}
	}
	return t.String() + " " + doing + t.at.describe()
}

// Kill lets no goroutine of a rank take another step, as if its process had died.
//
//go:norace
func Kill(label string) {
	s := known()
	if s == nil {
		return
	}
	for i := 0; i < s.count; i++ {
		if t := s.tasks[i]; t != nil && t.label == label {
			t.isKilled = true
		}
	}

	for i := range s.calendar.dues[:s.calendar.end] {
		if t := s.calendar.dues[i].timer; t != nil && t.label == label {
			t.isArmed = false
		}
	}
}

// Stall lets no goroutine of a rank take a step until d has passed, as if its process had been
// stopped.
//
//go:norace
func Stall(label string, d time.Duration) {
	if s := known(); s != nil {
		s.calendar.add(due{at: time.Now().Add(d), stalled: label})
	}
}

// At calls f in a goroutine of its own once the program has taken that many steps. If the program
// ends before, it does not.
func At(steps int, f func()) {
	s := known()
	if s == nil {
		return
	}
	t := s.start("a step", true, func() {
		s.block(&reached{s, steps}, "a step")
		s.setForeground()
		f()
	})
	t.setLabel("")
}

//go:norace
func (t *task) setLabel(label string) { t.label = label }

// reached is the condition that the program has taken so many steps.
type reached struct {
	s     *scheduler
	steps int
}

//go:norace
func (r *reached) isTrue() bool { return r.s.steps >= r.steps && r.s.calendar.endedAt.IsZero() }
