package ccltest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// runFrame begins the line of the kernel's caller in a stack trace.
const runFrame = "github.com/goccl/goccl/ccl/ccltest.(*group).runKernel("

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// kernelStacks returns the stacks of the goroutines that run a kernel, without the frames
// below it.
func kernelStacks() string {
	text := "goroutines in the kernel:"
	for stack := range strings.SplitSeq(stacks(), "\n\n") {
		if kernel, _, inside := strings.Cut(stack, "\n"+runFrame); inside {
			text += "\n\n" + kernel
		}
	}
	return text
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
	stack, _, _ = strings.Cut(stack, "\n"+runFrame)
	lines := strings.Split(stack, "\n")
	text, most := "", 3
	for i := 2; i+1 < len(lines) && most > 0; i += 2 { // a function, then its file and line
		foreign := []string{"runtime.", "github.com/goccl/goccl/ccl."}
		if slices.ContainsFunc(foreign, func(p string) bool { return strings.HasPrefix(lines[i], p) }) {
			continue
		}
		function := lines[i][:max(0, strings.LastIndex(lines[i], "("))]
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +")
		text += fmt.Sprintf("\n  in %s, %s", function, place)
		most--
	}
	return text
}
