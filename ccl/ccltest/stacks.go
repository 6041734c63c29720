package ccltest

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// runFrame begins the line of the kernel's caller in a stack trace.
const runFrame = "github.com/goccl/goccl/ccl/ccltest.(*group).runKernel("

// stack is the goroutines in one state with the same frames.
type stack struct {
	state  string // such as "chan receive"
	frames []frame
	count  int
}

// frame is a function and its line. The last frame of a stack is of the function that started it,
// with "created by" before its name.
type frame struct{ function, file, line string }

func (f frame) String() string { return fmt.Sprintf("%s, %s:%s", f.function, f.file, f.line) }

// kernels reports whether the frame is of code that an author of kernels may have written.
func (f frame) kernels() bool {
	function := strings.TrimPrefix(f.function, creator)
	if f.function == "" || strings.HasPrefix(function, suite) {
		return strings.HasSuffix(f.file, "_test.go") // a kernel of the suite's own tests
	}
	foreign := []string{"runtime.", "runtime/", "internal/", "sync.", "sync/", "syscall.", "testing.", "time.", "main.main",
		"github.com/goccl/goccl/ccl.", "github.com/goccl/goccl/transport/", "github.com/goccl/goccl/internal/"}
	return !slices.ContainsFunc(foreign, func(p string) bool { return strings.HasPrefix(function, p) })
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
	for i, text := range strings.Split(string(buf[:n]), "\n\n") {
		if i == 0 {
			continue // this goroutine
		}
		s := parseStack(text)
		key := fmt.Sprint(s.state, s.frames)
		if all[key] == nil {
			all[key] = s
		}
		all[key].count++
	}
	return all
}

// parseStack reads the text of one goroutine: "goroutine 7 [select, 2 minutes]:", and then two
// lines for each frame.
func parseStack(text string) *stack {
	lines := strings.Split(text, "\n")
	_, state, _ := strings.Cut(lines[0], "[")
	state, _, _ = strings.Cut(state, "]")
	state, _, _ = strings.Cut(state, ",")

	s := &stack{state: state}
	for i := 1; i+1 < len(lines); i += 2 {
		function, started := strings.CutPrefix(lines[i], creator)
		if started {
			function, _, _ = strings.Cut(function, " in goroutine")
			function = creator + function
		} else if at := strings.LastIndex(function, "("); at >= 0 {
			function = function[:at]
		}

		position, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +")
		colon := max(0, strings.LastIndex(position, ":"))
		s.frames = append(s.frames, frame{function, position[:colon], strings.TrimPrefix(position[colon:], ":")})
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
		at := slices.IndexFunc(s.frames, func(f frame) bool { return f.function+"(" == runFrame })
		if at >= 0 {
			s.frames = s.frames[:at]
			inside = append(inside, s)
		}
	}
	return "goroutines in the kernel:" + stacksText(inside)
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
		return fmt.Errorf("%w%s", err, kernelFrames(string(e.Stack)))
	}
	return err
}

// kernelFrames returns the innermost three functions of the kernel in the stack of a
// panic.
func kernelFrames(stack string) string {
	_, stack, _ = strings.Cut(stack, "\npanic(")
	_, stack, _ = strings.Cut(stack, "\n")
	stack, _, _ = strings.Cut(stack, "\n"+runFrame)

	text, most := "", 3
	for _, f := range parseStack(stack).frames {
		isForeign := strings.HasPrefix(f.function, "runtime.") || strings.HasPrefix(f.function, "github.com/goccl/goccl/ccl.")
		if !isForeign && most > 0 {
			text += fmt.Sprintf("\n  in %v", f)
			most--
		}
	}
	return text
}
