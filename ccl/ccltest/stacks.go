package ccltest

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/library"
)

// runFrame is the kernel's caller in a stack trace.
const runFrame = "github.com/goccl/goccl/ccl/ccltest.(*group).runKernel"

// stack is the goroutines in one state with the same frames.
type stack struct {
	state  string // such as "chan receive"
	frames []frame
	count  int
}

// frame is a function and its line. The last frame of a stack is of the function that started it,
// with "created by" before its name.
type frame launchenv.Frame

func (f frame) String() string { return fmt.Sprintf("%s, %s:%d", f.Function, f.File, f.Line) }

// kernels reports whether the frame is of code that an author of kernels may have written.
func (f frame) kernels() bool {
	function := strings.TrimPrefix(f.Function, creator)
	if f.Function == "" || strings.HasPrefix(function, suite) {
		return strings.HasSuffix(f.File, "_test.go") // a kernel of the suite's own tests
	}
	foreign := []string{"runtime.", "runtime/", "internal/", "sync.", "sync/", "syscall.", "testing.", "time.", "main.main",
		"github.com/goccl/goccl/ccl.", "github.com/goccl/goccl/transport/", "github.com/goccl/goccl/internal/"}
	return !library.IsStandard(function, f.File) && !slices.ContainsFunc(foreign, func(p string) bool { return strings.HasPrefix(function, p) })
}

const (
	creator = "created by "
	suite   = "github.com/goccl/goccl/ccl/ccltest."
)

// mostStackBytes bounds the text of all stacks, some 100,000 goroutines.
const mostStackBytes = 64 << 20

// stacks returns the stacks of all other goroutines, by their state and frames.
func stacks() map[string]*stack {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for n == len(buf) && n < mostStackBytes {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	all := make(map[string]*stack)
	for _, g := range launchenv.ParseStacks(string(buf[:n]))[1:] { // the first is this goroutine
		s := newStack(g)
		key := fmt.Sprint(s.state, s.frames)
		if all[key] == nil {
			all[key] = s
		}
		all[key].count++
	}
	return all
}

func newStack(g launchenv.Goroutine) *stack {
	s := &stack{}
	s.state, _, _ = strings.Cut(g.State, ",")
	for _, f := range g.Frames {
		s.frames = append(s.frames, frame(f))
	}
	if g.Creator != nil {
		s.frames = append(s.frames, frame{creator + g.Creator.Function, g.Creator.File, g.Creator.Line})
	}
	return s
}

// A text has at most mostStacks different stacks, and of each mostFrames frames.
const (
	mostStacks = 8
	mostFrames = 6
)

// stacksText lists stacks, each once with the number of its goroutines: first those with frames of
// the kernel, of which it shows only these.
func stacksText(all []*stack) string {
	inKernel := func(s *stack) bool { return slices.ContainsFunc(s.frames, frame.kernels) }
	order := func(s *stack) int {
		if inKernel(s) {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b *stack) int {
		return cmp.Or(order(a)-order(b), b.count-a.count, strings.Compare(fmt.Sprint(a.frames), fmt.Sprint(b.frames)))
	})

	var b strings.Builder
	for i, s := range all {
		if i == mostStacks {
			fmt.Fprintf(&b, "\n  ... %d more stacks", len(all)-i)
			break
		}

		fmt.Fprintf(&b, "\n  %s, %s:", plural(s.count, "goroutine"), s.state)
		rest := mostFrames
		for _, f := range s.frames {
			if rest > 0 && (f.kernels() || !inKernel(s)) {
				fmt.Fprintf(&b, "\n    %v", f)
				rest--
			}
		}
	}
	return b.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// kernelStacks describes the goroutines that run a kernel, without the frames below it.
func kernelStacks() string {
	var inside []*stack
	for _, s := range stacks() {
		at := slices.IndexFunc(s.frames, func(f frame) bool { return f.Function == runFrame })
		if at >= 0 {
			s.frames = s.frames[:at]
			inside = append(inside, s)
		}
	}
	return "goroutines in the kernel:" + stacksText(inside)
}

// runsKernel reports whether the kernel has been called on this goroutine.
func runsKernel() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if f.Function == runFrame || !more {
			return f.Function == runFrame
		}
	}
}

// newStacks describes the goroutines that run now and did not run before.
func newStacks(before map[string]*stack) string {
	var added []*stack
	for key, s := range stacks() {
		if old := before[key]; old != nil {
			s.count -= old.count
		}
		if s.count > 0 {
			added = append(added, s)
		}
	}
	return "goroutines that are left:" + stacksText(added)
}

// withFrames adds to a panic the lines of the kernel that led to it.
func withFrames(err error) error {
	if e, ok := errors.AsType[*ccl.KernelPanicError](err); ok {
		return fmt.Errorf("%w%s", err, kernelFrames(e.Stack))
	}
	return err
}

// kernelFrames returns the innermost three functions of the kernel in the stack of a panic.
func kernelFrames(stack []byte) (text string) {
	var frames []launchenv.Frame
	if all := launchenv.ParseStacks(string(stack)); len(all) > 0 {
		frames = all[0].Frames
	}
	frames = frames[slices.IndexFunc(frames, func(f launchenv.Frame) bool { return f.Function == "panic" })+1:]

	most := 3
	for _, f := range frames {
		switch {
		case f.Function == runFrame:
			return text
		case frame(f).kernels() && most > 0:
			text += fmt.Sprintf("\n  in %v", frame(f))
			most--
		}
	}
	return text
}
