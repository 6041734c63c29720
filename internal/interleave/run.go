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

	explorer *explorer
}

// Kind is the kind of a finding.
type Kind string

// Kinds of findings.
const (
	Standstill Kind = "no goroutine can go on, and nothing is due"
	Overdue    Kind = "no goroutine can go on, and nothing is due soon"
	Endless    Kind = "the program does not end"
	Panic      Kind = "panic"
	Leak       Kind = "goroutines or timers are left"
)

// Finding is what is wrong with a program under a seed.
type Finding struct {
	Kind  Kind
	Text  string
	Tasks []string // a line for each goroutine
}

func (f *Finding) Error() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	if f.Text != "" {
		fmt.Fprintf(&b, ": %s", f.Text)
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
	defer watch()()
	if !detectsRaces { // to hand over from one goroutine to another is faster on one processor
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	s := newScheduler(&o)
	synctest.Test(t, func(*testing.T) { s.run(program) })

	r := Result{Steps: s.steps, Hash: s.hash, Finding: s.finding}
	if c, ok := s.choose.(*recorder); ok {
		r.Choices = append(Choices{}, c.choices[:c.end]...) // not nil
	}
	if s.trace != nil {
		r.Trace = s.trace.steps()
	}
	return r
}

func newScheduler(o *Options) *scheduler {
	s := &scheduler{options: o, limit: o.Limit, random: random(^o.Seed), hash: 14695981039346656037}
	if s.limit == 0 {
		s.limit = 1_000_000
	}
	if o.IsTraced {
		s.trace = &trace{}
	}
	s.choose = newChooser(o)
	if o.IsRecorded {
		s.choose = &recorder{chooser: s.choose}
	}
	return s
}

// run runs in the bubble.
func (s *scheduler) run(program func()) {
	s.done = make(chan struct{})
	if s.trace != nil {
		s.trace.start = time.Now()
	}
	root := s.add("its first step", false)
	s.current = root
	setRunning(s)
	defer setRunning(nil)

	go root.run(program)
	root.pass()
	<-s.done
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
		return newPriorities(o.Seed, 1<<(8+o.Seed/4%8))
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
	for i := 0; i < s.count; i++ {
		if t := s.tasks[i]; t != nil {
			s.current, s.lastSteps = t, 0
			t.pass()
			<-t.ended
		}
	}
	for i := range s.held[:s.holds] {
		s.held[i].release()
	}
}

//go:norace
func (s *scheduler) findLeaks() {
	isLeak := false
	for i := 0; i < s.count; i++ {
		t := s.tasks[i]
		isLeak = isLeak || t != nil && !t.isBackground && !t.isKilled
	}
	for i := range s.calendar.dues[:s.calendar.end] {
		t := s.calendar.dues[i].timer
		isLeak = isLeak || t != nil && t.isArmed && t.c == nil
	}
	if isLeak {
		s.fail(&Finding{Kind: Leak})
	}
}

// describe returns what each task is about to do.
//
//go:norace
func (s *scheduler) describe() []string {
	texts := make([]string, 0, s.count)
	for i := 0; i < s.count; i++ {
		t := s.tasks[i]
		if t == nil || t.isBackground && s.calendar.endedAt.IsZero() {
			continue
		}
		texts = append(texts, t.describe())
	}

	for i := range s.calendar.dues[:s.calendar.end] {
		if t := s.calendar.dues[i].timer; t != nil && t.isArmed && t.c == nil {
			texts = append(texts, "a timer of "+t.label+" is armed")
		}
	}
	return texts
}
