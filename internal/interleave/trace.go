//go:build interleave

package interleave

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"time"
)

// Action is what has happened at a step of a run with Options.IsTraced.
type Action struct {
	Task  int    // its number; -1: none, the clock has advanced
	Label string // of its rank
	What  string // the function of this package that was called, or what else has happened
	Where string // file and line of the caller
	Line  string // the source there, if it can be read

	isTurn bool // the task has taken a step
}

func (s Action) String() string {
	if s.Where == "" {
		return cmp.Or(s.What, "begins")
	}
	if s.Line != "" {
		return path.Base(s.Where) + " " + s.Line
	}
	return s.What + " " + path.Base(s.Where)
}

// stack has the callers of a step.
type stack struct {
	callers [32]uintptr
	depth   int
}

// look notes where the running goroutine is.
//
//go:norace
func (c *stack) look() { c.depth = runtime.Callers(3, c.callers[:]) }

// trace has all steps of a run.
type trace struct {
	moments []moment
	end     int
	start   time.Time
	files   map[string][]string // the lines of source files

	// isProgram selects what is shown of a goroutine: the lines of the program that it reaches. Nil:
	// each step, and the function that has called this package.
	isProgram func(runtime.Frame) bool
}

type moment struct {
	of    *task // nil: the clock has advanced
	label string
	event event
	at    stack
	time  time.Time // if the clock has advanced

	word      any // that the task has used, or the lock that it has taken; nil: none
	isRead    bool
	isWritten bool
}

//go:norace
func (r *trace) add(t *task, e event) {
	m := moment{of: t, event: e}
	switch {
	case t != nil:
		m.label, m.at = t.label, t.at
	default:
		m.time = time.Now()
	}
	r.moments = grow(r.moments, r.end)
	r.moments[r.end] = m
	r.end++
}

// touch notes that the running task has used a word, or has taken a lock.
//
//go:norace
func touch(word any, isRead, isWritten bool) {
	s := running
	if s == nil || s.trace == nil || s.isOver || s.trace.end == 0 {
		return
	}
	m := &s.trace.moments[s.trace.end-1] // its step
	m.word, m.isRead, m.isWritten = word, isRead, isWritten
}

func (r *trace) steps() (steps []Action) {
	reached := map[int]string{} // by task
	for i := range r.moments[:r.end] {
		m := &r.moments[i]
		step := Action{Task: -1, Label: m.label}
		if m.of != nil {
			step.Task = m.of.number
		}

		switch m.event {
		case advanceClock:
			step.What = fmt.Sprint("the clock shows ", m.time.Sub(r.start))
		case endPoll:
			step.What = "its poll is ended"

		default:
			file, line := "", 0
			step.isTurn = true
			step.What, file, line = m.at.find(r.isProgram)
			step.Where, step.Line = position(file, line), r.read(file, line)
		}

		n := len(steps)
		switch {
		case r.isProgram == nil:
		case m.event != advanceClock && (step.Where == "" || step.Where == reached[step.Task]):
			continue
		case m.event == advanceClock && n > 0 && steps[n-1].Task < 0:
			steps = steps[:n-1]
		}
		reached[step.Task] = step.Where
		steps = append(steps, step)
	}
	return steps
}

// find returns the function of this package that was called, and from where. With isProgram it is
// from which line of the program, "" if from none.
func (c *stack) find(isProgram func(runtime.Frame) bool) (function, file string, line int) {
	const prefix = "internal/interleave."
	frames := runtime.CallersFrames(c.callers[:c.depth])
	for {
		frame, more := frames.Next()

		if isProgram != nil {
			if frame.Function != "" && isProgram(frame) {
				return "", frame.File, frame.Line
			}
			if !more {
				return "", "", 0
			}
			continue
		}

		_, name, isOwn := strings.Cut(frame.Function, prefix)
		if strings.HasSuffix(name, "task).run") || frame.Function == "" {
			return function, "", 0 // a function of this package has started the goroutine
		}
		if !isOwn || strings.HasSuffix(frame.File, "_test.go") {
			return function, frame.File, frame.Line
		}

		name = strings.NewReplacer("(*", "", ")", "", "cell[...].", "", "number[...].", "", "[...]", "").Replace(name)
		if !strings.Contains(name, ".func") && !strings.HasPrefix(name, "scheduler.") {
			function = name
		}
		if !more {
			return function, "", 0
		}
	}
}

func (c *stack) describe() string {
	if c.depth == 0 {
		return ""
	}
	what, file, line := c.find(nil)
	if file == "" {
		return ""
	}
	return fmt.Sprintf(", %s at %s", what, position(file, line))
}

// position names a line by the last two parts of its file's path.
func position(file string, line int) string {
	if file == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(file)), path.Base(file), line)
}

// read returns a line of a source file, if it can be read.
func (r *trace) read(file string, line int) string {
	lines, isKnown := r.files[file]
	if !isKnown {
		text, _ := os.ReadFile(file)
		lines = strings.Split(string(text), "\n")
		r.files[file] = lines
	}
	if line < 1 || line > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[line-1])
}
