//go:build interleave

package interleave

import (
	"bytes"
	"fmt"
	"runtime"
	"testing/synctest"
	"time"

	"github.com/petermattis/goid"
)

// away has the tasks that wait for what this package does not know: a channel, a group or a sleep
// of the program's own. The goroutine that has started the program, the attendant, notices by
// synctest.Wait that everything rests though it is a task's turn. That task is away then, and
// others go on. Once its wait has ended it runs beside the running task, until it takes a step.
//
// The attendant alone changes tasks, while everything rests.
type away struct {
	tasks    []*task
	count    int
	returned chan struct{} // a task has returned, or a stranger has come

	bubble   string        // the name of the bubble in stacks
	isAsked  bool          // the running task waits for the attendant
	pause    time.Duration // how long it wants time to pass; 0: until everything rests
	stranger *Finding      // a goroutine that is no task has called this package
}

// attend returns once the program has ended, or cannot go on.
//
//go:norace
func (s *scheduler) attend() {
	s.away.returned = make(chan struct{}, 1)
	for {
		s.rest()
		switch {
		case s.hasStopped():
			return
		case s.away.stranger != nil && s.away.pause == 0:
			s.fail(s.away.stranger)
			return

		case s.away.isAsked:
			s.sleep(s.away.pause)
			s.away.isAsked, s.away.pause = false, 0
			s.current.pass()
		case !s.replace():
			s.findStandstill()
			return
		}
	}
}

// replace lets another task go on while the running one is away. It reports false if none can.
//
//go:norace
func (s *scheduler) replace() bool {
	s.leave(s.current)
	s.current = nil

	next := s.pick(nil)
	if next == nil {
		return false
	}
	s.current = next
	next.pass()
	return true
}

//go:norace
func (s *scheduler) leave(t *task) {
	t.isAway = true
	s.away.tasks = grow(s.away.tasks, s.away.count)
	s.away.tasks[s.away.count] = t
	s.away.count++
}

// rest waits until all goroutines rest, and takes back those that were away.
//
//go:norace
func (s *scheduler) rest() {
	hideFromRaceDetector()
	synctest.Wait()
	showToRaceDetector()

	n := 0
	for i := range s.away.tasks[:s.away.count] {
		t := s.away.tasks[i]
		if !t.isBack && !t.hasEnded {
			s.away.tasks[n] = t
			n++
			continue
		}
		t.isAway, t.isBack = false, false
	}
	s.away.count = n
}

// sleep lets time pass until d is over or a task returns.
//
//go:norace
func (s *scheduler) sleep(d time.Duration) {
	if d == 0 {
		return
	}
	if s.current != nil && !s.away.isAsked {
		s.ask(d)
		return
	}

	timer := time.NewTimer(d)
	hideFromRaceDetector()
	select {
	case <-s.away.returned: // before
	default:
	}
	select {
	case <-timer.C:
	case <-s.away.returned:
	}
	timer.Stop()
	showToRaceDetector()
	s.rest()
}

// ask returns once the attendant has let time pass, and everything has rested.
//
//go:norace
func (s *scheduler) ask(d time.Duration) {
	s.away.isAsked, s.away.pause = true, d
	s.current.await()
}

//go:norace
func (s *scheduler) hasStopped() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// settle makes sure that it is the calling goroutine's turn: a task that was away waits for it.
//
//go:norace
func (s *scheduler) settle() {
	id := goid.Get()
	if t := s.current; t != nil && t.id == id {
		return
	}

	for i := range s.away.tasks[:s.away.count] {
		if t := s.away.tasks[i]; t.id == id {
			t.isBack = true
			s.announce()
			t.await()
			return
		}
	}
	s.refuse()
}

//go:norace
func (s *scheduler) announce() {
	hideFromRaceDetector()
	select {
	case s.away.returned <- struct{}{}:
	default:
	}
	showToRaceDetector()
}

// refuse ends a goroutine that is no task, and the program.
//
//go:norace
func (s *scheduler) refuse() {
	stack := stackOf()
	if bubbleOf(stack) != s.away.bubble {
		panic(fmt.Sprintf("%s, which a seed orders, runs beside this goroutine, which calls goccl as well: "+
			"let no test that calls goccl be parallel to it", s.options.name))
	}

	if s.away.stranger == nil {
		s.away.stranger = &Finding{Kind: Stranger, Stack: string(stack)}
	}
	s.announce()
	hideFromRaceDetector()
	<-s.done
	runtime.Goexit()
}

// bubbleOf returns the name of the bubble of a goroutine by its stack.
func bubbleOf(stack []byte) string {
	header, _, _ := bytes.Cut(stack, []byte("]"))
	if at := bytes.Index(header, []byte("synctest bubble ")); at >= 0 {
		return string(header[at:])
	}
	return ""
}

// explain adds to a finding where all goroutines are.
//
//go:norace
func (s *scheduler) explain(f *Finding) {
	var why string
	f.Tasks, f.Goroutines, why = s.describe()
	if f.Kind == Standstill || f.Kind == Overdue {
		f.Text = why
	}
	f.Stacks, f.Bubble = stackText(), s.away.bubble
}

// stackOf returns the stack of the calling goroutine.
func stackOf() []byte {
	stack := make([]byte, 1<<14)
	return stack[:runtime.Stack(stack, false)]
}

// stackText returns the stacks of all goroutines.
func stackText() string {
	for size := 1 << 20; ; size *= 2 {
		text := make([]byte, size)
		if n := runtime.Stack(text, true); n < size {
			return string(text[:n])
		}
	}
}
