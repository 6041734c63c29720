//go:build interleave

package interleave

import (
	"runtime"
	"time"
)

// running is the scheduler of the current Run.
var running *scheduler

// scheduler runs one task at a time. Its fields belong to the running task.
//
// The race detector must not see that tasks run one after the other, since that would hide what the
// program itself does not order. So the functions that use these fields are not instrumented, and
// use neither maps nor append, whose runtime functions are.
type scheduler struct {
	choose  chooser
	random  random
	tasks   []*task // by number; the numbers of those that have ended, nil, are given again
	count   int     // all numbers are below it
	current *task
	done    chan struct{} // closed when no task can go on
	ready   []*task       // scratch

	calendar calendar
	away     away
	sleepers *sleeper
	held     []lock // the first holds of them
	holds    int
	trace    *trace // nil: the run is not traced

	steps     int
	picks     int // how often a task was chosen
	hash      uint64
	isOver    bool // the program has ended; tasks are being ended
	lastSteps int  // of the task that is being ended
	finding   *Finding
	options   *Options
}

// most bounds how many goroutines a program may have at once.
const most = 4096

const prime = 1099511628211 // of FNV-1a

// known returns the scheduler of the Run that is on, once it is the calling goroutine's turn.
//
//go:norace
func known() *scheduler {
	s := running
	if s != nil {
		s.settle()
	}
	return s
}

//go:norace
func isOn() bool { return running != nil }

//go:norace
func isEnding() bool { return running != nil && running.isOver }

//go:norace
func (s *scheduler) isEnding() bool { return s.isOver }

// step lets another task go on, or the running one.
//
//go:norace
func step() {
	if s := known(); s != nil {
		s.step()
	}
}

// stepAfter is a step behind a store or an unlock, in every other seed. Without it the store comes
// together with what follows it up to the next step, and nobody sees one without the other.
//
//go:norace
func stepAfter() {
	if s := running; s != nil && s.options.hasAfter {
		s.step()
	}
}

//go:norace
func (s *scheduler) step() {
	if s.isOver {
		s.lastSteps++
		if s.lastSteps > 100_000 {
			runtime.Goexit()
		}
		return
	}

	if s.away.count > 0 || s.away.stranger != nil {
		s.ask(0)
	}
	if s.findRace(s.current) {
		s.stop()
	}

	s.steps++
	if s.steps == s.options.Limit {
		s.fail(&Finding{Kind: Endless})
		s.stop()
	}
	if s.trace == nil {
		s.pickNext()
		return
	}

	t := s.current
	t.at.look()
	s.pickNext()
	s.trace.add(t, goOn)
}

// findRace reports whether the running task has made a race since its last step.
//
//go:norace
func (s *scheduler) findRace(t *task) bool {
	if !hasNewRace() {
		return false
	}
	t.at.look()
	s.fail(&Finding{Kind: Race, Text: t.String() + t.at.describe(), Racer: Goroutine{Number: t.id, Label: t.label}})
	return true
}

// wait is a step of the running task that it takes once a condition is true. Outside of Run it
// returns at once.
func wait(until condition, what string) {
	if s := known(); s != nil {
		s.block(until, what)
	}
}

// block is wait of a Run that is on. A task that is being ended does not wait, it ends.
//
//go:norace
func (s *scheduler) block(until condition, what string) {
	if s.isOver {
		if !until.isTrue() {
			runtime.Goexit()
		}
		return
	}
	t := s.current
	t.until, t.what = until, what
	s.step()
	t.until = nil
}

// pickNext chooses the next task, and returns when it is the running task's turn again.
//
//go:norace
func (s *scheduler) pickNext() {
	me := s.current
	next := s.pick(me)
	if next == nil {
		s.stop()
	}
	if next == me {
		return
	}
	s.current = next
	next.pass()
	me.await()
}

// pick returns the task that goes on, or nil if none can and nothing is due.
//
//go:norace
func (s *scheduler) pick(me *task) *task {
	for {
		next, event := s.choose.choose(s, me)
		switch event {
		case advanceClock:
			s.hash = (s.hash ^ most) * prime
			s.calendar.advance(s.picks)
			if s.trace != nil && s.calendar.endedAt.IsZero() {
				s.trace.add(nil, advanceClock)
			}
			continue

		case endPoll:
			next.pollIsOver, next.isPolling = true, false
			if s.trace != nil {
				s.trace.add(next, endPoll)
			}
		case standstill:
			return nil
		}

		s.picks++
		s.hash = (s.hash ^ uint64(next.number)) * prime
		return next
	}
}

// findReady returns the tasks that can go on, by number.
//
//go:norace
func (s *scheduler) findReady() []*task {
	n := 0
	for i := 0; i < s.count; i++ {
		if t := s.tasks[i]; t != nil && t.isReady() {
			s.ready[n] = t
			n++
		}
	}
	return s.ready[:n]
}

// findPoll returns the task, the nth of those in turn, that polls in vain; nil: none does.
//
//go:norace
func (s *scheduler) findPoll(n int) *task {
	polls := 0
	for i := 0; i < s.count; i++ {
		if t := s.tasks[i]; t != nil && t.pollsInVain() {
			s.ready[polls] = t
			polls++
		}
	}
	if polls == 0 {
		return nil
	}
	return s.ready[n%polls]
}

//go:norace
func (s *scheduler) add(what string, isBackground bool) *task {
	t := &task{s: s, what: what, isBackground: isBackground, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if s.isOver {
		return t
	}
	if s.current != nil {
		t.label = s.current.label
	}

	t.number = s.count
	for i := 1; i < s.count; i++ { // 0 is the program
		if s.tasks[i] == nil {
			t.number = i
			break
		}
	}

	if t.number == s.count {
		if s.count == most {
			panic("interleave: a program has too many goroutines")
		}
		s.count++
		s.tasks, s.ready = grow(s.tasks, s.count), grow(s.ready, s.count)
	}
	s.tasks[t.number] = t
	return t
}

// grow returns a slice that is longer than n.
//
//go:norace
func grow[T any](old []T, n int) []T {
	if n < len(old) {
		return old
	}
	grown := make([]T, 2*n+16)
	for i := range old {
		grown[i] = old[i]
	}
	return grown
}

// end ends the running task.
//
//go:norace
func (s *scheduler) end(t *task) {
	if s.isOver {
		return
	}
	s.findRace(t)
	s.tasks[t.number] = nil
	for s.count > 1 && s.tasks[s.count-1] == nil {
		s.count--
	}

	if t.number == 0 {
		s.calendar.endedAt = time.Now()
	}
	if s.finding == nil {
		if next := s.pick(nil); next != nil {
			s.current = next
			next.pass()
			return
		}
	}
	s.findStandstill()
	close(s.done)
}

// findStandstill is called when no task can go on.
//
//go:norace
func (s *scheduler) findStandstill() {
	if s.finding == nil && s.calendar.endedAt.IsZero() {
		s.fail(&Finding{Kind: Standstill})
	}
}

// fail notes the first finding.
//
//go:norace
func (s *scheduler) fail(f *Finding) {
	if s.finding != nil {
		return
	}
	if s.away.stranger != nil {
		f = s.away.stranger
	}
	s.explain(f)
	s.finding = f
}

// stop ends the program in the running task, which does not return.
//
//go:norace
func (s *scheduler) stop() {
	s.findStandstill()
	t := s.current
	close(s.done)
	t.await()
}

// draw draws a number below n.
//
//go:norace
func (s *scheduler) draw(n int) int { return s.random.draw(n) }
