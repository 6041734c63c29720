//go:build interleave

package interleave

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// condition is what a task waits for. isTrue has no effect, and any task may call it.
type condition interface{ isTrue() bool }

// word is what a polling task has read.
type word interface{ bits() uint64 }

// load is a load of a word and what it returned.
type load struct {
	word word
	bits uint64
}

// task is a goroutine of the program.
type task struct {
	s      *scheduler
	number int
	label  string        // of its rank
	what   string        // that it waits for, or that has started it
	wake   chan struct{} // holds a token if it is this task's turn
	ended  chan struct{} // closed at its end

	isBackground bool // it ends with the program
	isKilled     bool // it takes no more steps
	hasEnded     bool
	until        condition // nil: it can go on
	isPolling    bool
	pollIsOver   bool
	loads        [8]load // since the last turn of its poll
	loaded       int
}

// start starts a task that belongs to the same rank as the running one.
func (s *scheduler) start(what string, isBackground bool, f func()) {
	t := s.add(what, isBackground)
	go t.run(f)
}

// run runs in the task's goroutine.
func (t *task) run(f func()) {
	defer func() {
		if p := recover(); p != nil {
			t.s.fail(&Finding{Kind: Panic, Text: fmt.Sprintf("%s panics: %v\n%s", t, p, debug.Stack())})
		}
		t.s.end(t)
		close(t.ended)
	}()

	debug.SetPanicOnFault(true) // memory that was given back is not there
	t.await()
	f()
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
	if t.label == "" {
		return fmt.Sprintf("goroutine %d", t.number)
	}
	return fmt.Sprintf("goroutine %d of %s", t.number, t.label)
}

// isReady reports whether the task can go on.
//
//go:norace
func (t *task) isReady() bool {
	switch {
	case t.isKilled || t.s.calendar.isStalled(t.label):
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
	hideFromRaceDetector()
	hasChanged := false
	for i := range t.loads[:t.loaded] {
		hasChanged = hasChanged || t.loads[i].word.bits() != t.loads[i].bits
	}
	showToRaceDetector()
	return hasChanged
}

// noteLoad notes what the running task has read.
//
//go:norace
func noteLoad(w word, bits uint64) {
	s := running
	if s == nil || s.isOver {
		return
	}
	t := s.current
	if t.loaded < len(t.loads) {
		t.loads[t.loaded] = load{w, bits}
	}
	t.loaded++
}

// PollEnds is called once in each turn of a loop that reads words until they change. It waits until
// one of those that this turn has read changes, and reports whether the loop must end instead.
//
//go:norace
func PollEnds() bool {
	s := active()
	if s == nil {
		return false
	}
	t := s.current
	t.isPolling, t.pollIsOver = true, false
	s.yield("a word")
	t.isPolling, t.loaded = false, 0
	return t.pollIsOver
}

// Go starts a goroutine.
func Go(f func()) {
	s := active()
	if s == nil {
		go f()
		return
	}
	s.start("go", false, f)
	s.step()
}

// SetLabel names the rank to which the running goroutine belongs, and those that it starts.
//
//go:norace
func SetLabel(label string) {
	if s := active(); s != nil {
		s.current.label = label
	}
}

// describe returns whose the task is and what it waits for.
//
//go:norace
func (t *task) describe() string {
	doing := "can go on, at " + t.what
	switch {
	case t.isKilled:
		doing = "was killed"
	case t.isPolling:
		doing = "polls"
	case t.until != nil:
		doing = "waits for " + t.what
	}
	return t.String() + " " + doing
}

// Kill lets no goroutine of a rank take another step, as if its process had died.
//
//go:norace
func Kill(label string) {
	s := active()
	if s == nil {
		return
	}
	for i := s.first; i < s.count; i++ {
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
	if s := active(); s != nil {
		s.calendar.add(due{at: time.Now().Add(d), stalled: label})
	}
}

// At calls f in a goroutine of its own once the program has taken that many steps. If the program
// ends before, it does not.
func At(steps int, f func()) {
	s := active()
	if s == nil {
		return
	}
	s.start("a step", true, func() {
		SetLabel("")
		s.block(&reached{s, steps}, "a step")
		f()
	})
}

// reached is the condition that the program has taken so many steps.
type reached struct {
	s     *scheduler
	steps int
}

//go:norace
func (r *reached) isTrue() bool { return r.s.steps >= r.steps }
