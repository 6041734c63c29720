//go:build interleave

package interleave

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Options of a Run.
type Options struct {
	Seed  uint64
	Limit int // steps after which the program counts as endless; 0: a million

	// IsLate lets time pass while goroutines can go on, so that timeouts fall due.
	IsLate bool

	// Patience is how long it may take until a goroutine can go on, where the program has no reason to
	// wait longer: a wake was lost, and a ticker would make up for it. 0: as long as it takes.
	Patience time.Duration

	// Choices is what happens instead of what Seed chooses: the running goroutine goes on wherever
	// they say nothing. Nil: Seed chooses.
	Choices Choices

	IsRecorded bool // Result.Choices is wanted
	IsTraced   bool // Result.Trace is wanted

	// IsProgram reports whether a function is the program's. Then Result.Trace has no steps, but the
	// lines of the program in the order in which its goroutines reach them.
	IsProgram func(runtime.Frame) bool

	explorer *explorer
	hasAfter bool   // a step also follows a store and an unlock
	name     string // of the test
}

// Kind is the kind of a finding.
type Kind string

// Kinds of findings.
const (
	Standstill Kind = "no goroutine can go on, and nothing is due"
	Overdue    Kind = "no goroutine can go on, and nothing is due soon"
	Endless    Kind = "the program does not end"
	Panic      Kind = "panic"
	Race       Kind = "data race, which the race detector reports"
	Leak       Kind = "goroutines or timers are left"
	Stranger   Kind = "a goroutine that no seed orders calls goccl"
	Blocked    Kind = "a goroutine waits for what no seed orders, and keeps all others from going on"
	Busy       Kind = "a goroutine runs without a step, and keeps all others from going on"
)

// Finding is what is wrong with a program under a seed.
type Finding struct {
	Kind  Kind
	Text  string
	Tasks []string // a line for each goroutine

	Goroutines []Goroutine // of Tasks
	Racer      Goroutine   // that has made the later access of a Race
	Stacks     string      // of all goroutines, when it was found
	Bubble     string      // how Stacks mark a goroutine of the program
	Stack      string      // of the goroutine that panics or is a Stranger
}

// Goroutine is a goroutine, or a timer, of a program.
type Goroutine struct {
	Number int64  // in stacks; of a timer 0
	Label  string // of its rank
	IsNext bool   // it is its turn
}

func (f *Finding) Error() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	if f.Text != "" {
		fmt.Fprintf(&b, ": %s", f.Text)
	}
	if f.Stack != "" {
		fmt.Fprintf(&b, "\n%s", f.Stack)
	}
	for _, t := range f.Tasks {
		fmt.Fprintf(&b, "\n\t%s", t)
	}
	return b.String()
}

// Result describes a Run.
type Result struct {
	Steps   int
	Hash    uint64 // of all choices
	Finding *Finding
	Choices Choices // with them instead of its seed a run takes the same steps
	Trace   []Action
}

// Run runs a program under a seed, and returns when it has ended and all its goroutines have. It
// runs in a bubble of testing/synctest: time.Now is the program's.
func Run(t *testing.T, o Options, program func()) Result {
	t.Helper()
	if isOn() {
		panic("interleave: two Runs at a time")
	}
	if !detectsRaces { // to hand over from one goroutine to another is faster on one processor
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	o.name = t.Name()
	s := newScheduler(&o)
	r := Result{Finding: s.bubble(t, program)}
	r.Steps, r.Hash = s.steps, s.hash
	if c, ok := s.choose.(*recorder); ok {
		r.Choices = append(Choices{}, c.choices[:c.end]...) // not nil
	}
	if s.trace != nil {
		r.Trace = s.trace.steps()
	}
	return r
}

// bubble runs the program in a bubble, and returns what is wrong with it. Goroutines that cannot
// end stay where they are, with their bubble.
func (s *scheduler) bubble(t *testing.T, program func()) *Finding {
	defer setRunning(nil)
	ended := make(chan struct{})
	stuck, stop := s.watch()
	defer stop()
	go func() {
		defer close(ended) // also if t has failed: synctest.Test ends this goroutine then
		defer s.recoverDeadlock()
		synctest.Test(t, func(*testing.T) { s.run(program) })
	}()

	select {
	case <-ended:
		return s.finding
	case f := <-stuck:
		return f
	}
}

// recoverDeadlock is for goroutines that have not ended with the program.
func (s *scheduler) recoverDeadlock() {
	p := recover()
	if p == nil {
		return
	}
	if _, isDeadlock := p.(error); !isDeadlock {
		panic(p)
	}
	s.fail(&Finding{Kind: Leak})
}

func newScheduler(o *Options) *scheduler {
	s := &scheduler{options: o, random: random(^o.Seed), hash: 14695981039346656037}
	if o.Limit == 0 {
		o.Limit = 1_000_000
	}
	if o.IsTraced {
		s.trace = &trace{isProgram: o.IsProgram, files: map[string][]string{}}
	}

	afters := random(o.Seed ^ prime)
	o.hasAfter = o.explorer == nil && afters.isOnce(2)
	s.choose = newChooser(o)
	if o.IsRecorded {
		s.choose = &recorder{chooser: s.choose}
	}
	return s
}

// run runs in the bubble.
func (s *scheduler) run(program func()) {
	s.done = make(chan struct{})
	s.away.bubble = bubbleOf(stackOf())
	if s.trace != nil {
		s.trace.start = time.Now()
	}
	hasNewRace() // of others
	root := s.add("its first step", false)
	s.current = root
	setRunning(s)
	defer setRunning(nil)

	go root.run(program)
	root.pass()
	s.attend()
	s.finish()
}

// newChooser returns what chooses by the options: one seed in four by priorities.
func newChooser(o *Options) chooser {
	switch {
	case o.explorer != nil:
		return o.explorer
	case o.Choices != nil:
		return &steady{choices: o.Choices}
	case o.Seed%4 == 3:
		return newPriorities(o.Seed, 1<<(8+o.Seed/4%8), o.IsLate)
	}
	return newWalk(o.Seed, o.IsLate)
}

//go:norace
func setRunning(s *scheduler) { running = s }

// finish looks for what the program has left, and ends it: its goroutines one after the other, and
// then the locks that these have held.
//
//go:norace
func (s *scheduler) finish() {
	if s.finding == nil {
		s.findLeaks()
	}

	s.isOver = true
	if !s.hasStopped() {
		close(s.done)
	}
	for t := s.remaining(); t != nil; t = s.remaining() {
		s.current, s.lastSteps = t, 0
		t.pass()
		s.rest()
		if !t.hasEnded { // it waits in what it has deferred
			s.leave(t)
			s.current = nil
		}
	}
	for i := range s.held[:s.holds] {
		s.held[i].release()
	}
}

// remaining returns a task that can be ended.
//
//go:norace
func (s *scheduler) remaining() *task {
	for i := 0; i < s.count; i++ {
		if t := s.tasks[i]; t != nil && !t.isAway && !t.hasEnded {
			return t
		}
	}
	return nil
}

//go:norace
func (s *scheduler) findLeaks() {
	isLeak := false
	for i := 0; i < s.count; i++ {
		t := s.tasks[i]
		isLeak = isLeak || t != nil && !t.isKilled && (!t.isBackground || t.awaitsContext())
	}
	for i := range s.calendar.dues[:s.calendar.end] {
		t := s.calendar.dues[i].timer
		isLeak = isLeak || t != nil && t.isArmed && t.c == nil
	}
	if isLeak {
		s.fail(&Finding{Kind: Leak})
	}
}

// describe returns what each task is about to do, and what explains that they wait, if the run is
// traced.
//
//go:norace
func (s *scheduler) describe() (texts []string, goroutines []Goroutine, why string) {
	closest := 2 * (nearby + 1)
	texts, goroutines = make([]string, 0, s.count), make([]Goroutine, 0, s.count)
	for i := 0; i < s.count; i++ {
		t := s.tasks[i]
		if t == nil || t.isBackground && !t.awaitsContext() && s.calendar.endedAt.IsZero() {
			continue
		}

		text := t.describe()
		for _, m := range s.trace.findMissed(t) {
			text += "\n\t\t" + s.trace.describe(m)
			if m.distance < closest {
				why, closest = t.String()+" "+s.trace.describe(m), m.distance
			}
		}

		texts, goroutines = append(texts, text), append(goroutines, Goroutine{t.id, t.label, t == s.current})
	}

	for i := range s.calendar.dues[:s.calendar.end] {
		if t := s.calendar.dues[i].timer; t != nil && t.isArmed && t.c == nil {
			texts, goroutines = append(texts, "a timer of "+t.label+" is armed"), append(goroutines, Goroutine{Label: t.label})
		}
	}
	return texts, goroutines, why
}
