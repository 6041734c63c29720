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
	tasks   []*task // all, by number; those that are nil have ended
	count   int     // of tasks
	first   int     // tasks below it have ended
	current *task
	done    chan struct{} // closed when no task can go on
	ready   []*task       // scratch

	calendar calendar
	sleepers *sleeper

	steps   int
	limit   int
	picks   int // how often a task was chosen
	hash    uint64
	isOver  bool // the program has ended; tasks are being ended
	finding *Finding
	options *Options
}

// most bounds what a program may have at once.
const most = 4096

const prime = 1099511628211 // of FNV-1a

// active returns the scheduler if the calling goroutine is a task that a seed orders.
//
//go:norace
func active() *scheduler {
	if s := running; s != nil && !s.isOver {
		return s
	}
	return nil
}

//go:norace
func isEnding() bool { return running != nil && running.isOver }

// giveUpAtEnd ends the goroutine if it would wait although the program is over: in a deferred
// function of a task that was killed or stood still.
func giveUpAtEnd(wouldWait bool) {
	if wouldWait && isEnding() {
		runtime.Goexit()
	}
}

//go:norace
func (s *scheduler) isEnding() bool { return s.isOver }

// step lets another task go on, or the running one.
//
//go:norace
func step() {
	if s := running; s != nil && !s.isOver {
		s.step()
	}
}

//go:norace
func (s *scheduler) step() {
	s.steps++
	if s.steps == s.limit {
		s.fail(&Finding{Kind: Endless})
		s.stop()
	}
	s.pickNext()
}

// yield is a step of a task that goes on once isReady returns true.
//
//go:norace
func (s *scheduler) yield(what string) {
	t := s.current
	before := t.what
	t.what = what
	s.step()
	t.what = before
}

// block waits until a condition is true.
//
//go:norace
func (s *scheduler) block(until condition, what string) {
	if s.isOver {
		return
	}
	t := s.current
	t.until = until
	s.yield(what)
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
			continue
		case endPoll:
			next.pollIsOver, next.isPolling = true, false
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
	for i := s.first; i < s.count; i++ {
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
	for i := s.first; i < s.count; i++ {
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
	t := &task{s: s, number: s.count, what: what, isBackground: isBackground,
		wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if s.current != nil {
		t.label = s.current.label
	}
	if s.count == len(s.tasks) {
		panic("interleave: a program has too many goroutines")
	}
	s.tasks[s.count] = t
	s.count++
	return t
}

// end ends the running task.
//
//go:norace
func (s *scheduler) end(t *task) {
	t.hasEnded = true
	s.tasks[t.number] = nil
	for s.first < s.count && s.tasks[s.first] == nil {
		s.first++
	}
	if s.isOver {
		return
	}

	if t.number == 0 {
		s.calendar.endedAt = time.Now()
	}
	next := s.pick(nil)
	if next == nil || s.finding != nil {
		close(s.done)
		return
	}
	s.current = next
	next.pass()
}

// fail notes the first finding.
//
//go:norace
func (s *scheduler) fail(f *Finding) {
	if s.finding == nil {
		f.Tasks = s.describe()
		s.finding = f
	}
}

// stop ends the program in the running task, which does not return.
//
//go:norace
func (s *scheduler) stop() {
	if s.finding == nil && s.calendar.endedAt.IsZero() {
		s.fail(&Finding{Kind: Standstill})
	}
	t := s.current
	close(s.done)
	t.await()
}

// draw draws a number below n.
//
//go:norace
func (s *scheduler) draw(n int) int { return s.random.draw(n) }
