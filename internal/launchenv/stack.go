package launchenv

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/library"
)

// Frame is a function on a stack.
type Frame struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

// String names the function and the file without their directories.
func (f Frame) String() string {
	return fmt.Sprintf("%s at %s:%d", path.Base(f.Function), filepath.Base(f.File), f.Line)
}

// Goroutine is a goroutine in a stack trace that the Go runtime has written.
type Goroutine struct {
	Number  int
	State   string  // such as "running" or "chan receive, 2 minutes"
	Frames  []Frame // the innermost first
	Creator *Frame  // the function that started it; nil: none did, or startsForOthers
}

var goroutineHeader = regexp.MustCompile(`^goroutine (\d+) .*\[([^\]]*)\].*:$`)

const createdBy = "created by "

// startsForOthers begins the names of functions that start goroutines for their callers. The
// runtime names these instead of the caller, which the name of the goroutine's own function begins
// with.
const startsForOthers = library.Prefix + "internal/interleave."

// ParseStacks returns the goroutines in a text of the Go runtime: debug.Stack, the message of a
// crash, or the stacks that SIGQUIT shows. It skips lines of other kinds.
func ParseStacks(text string) (all []Goroutine) {
	lines := strings.Split(text, "\n")
	isComplete := false
	for i := range lines {
		if m := goroutineHeader.FindStringSubmatch(lines[i]); m != nil {
			number, _ := strconv.Atoi(m[1]) // a number by the pattern
			all = append(all, Goroutine{Number: number, State: m[2]})
			isComplete = false
			continue
		}
		if len(all) == 0 || isComplete || i+1 == len(lines) {
			continue
		}

		g := &all[len(all)-1]
		if creator, ok := strings.CutPrefix(lines[i], createdBy); ok {
			creator, _, _ = strings.Cut(creator, " in goroutine ")
			f, ok := frame(creator, lines[i+1])
			if ok && !strings.HasPrefix(creator, startsForOthers) {
				g.Creator = &f
			}
			isComplete = ok
			continue
		}

		if end := strings.LastIndexByte(lines[i], '('); end > 0 {
			if f, ok := frame(lines[i][:end], lines[i+1]); ok {
				g.Frames = append(g.Frames, f)
			}
		}
	}

	return all
}

// frame parses the position of a function, the line after its name.
func frame(function, position string) (f Frame, ok bool) {
	position, indented := strings.CutPrefix(position, "\t")
	if !indented || function[0] == '\t' {
		return f, false
	}
	position, _, _ = strings.Cut(position, " +0x")
	colon := strings.LastIndexByte(position, ':')
	if colon < 0 {
		return f, false
	}
	line, err := strconv.Atoi(position[colon+1:])
	return Frame{function, position[:colon], line}, err == nil
}

// OwnFrames returns the program's own functions on a stack, without those of the Go runtime, the
// standard library and goccl. If no other remains it returns all.
func OwnFrames(stack []Frame) []Frame {
	frames := slices.DeleteFunc(slices.Clone(stack), func(f Frame) bool { return !f.IsOwn() })
	if len(frames) == 0 {
		return stack
	}
	return frames
}

// PanicFrames returns the program's own functions in the stack of a worker that has panicked, in
// the format of debug.Stack: those below the panic.
func PanicFrames(stack []byte) []Frame {
	all := ParseStacks(string(stack))
	if len(all) == 0 {
		return nil
	}
	frames := all[0].Frames
	if i := slices.IndexFunc(frames, func(f Frame) bool { return f.Function == "panic" }); i >= 0 {
		frames = frames[i+1:]
	}
	if i := slices.IndexFunc(frames, Frame.runsWorker); i >= 0 {
		frames = frames[:i] // the rest of the stack started the worker
	}
	return OwnFrames(frames)
}

// IsWorker reports whether the goroutine runs the worker of a rank.
func (g *Goroutine) IsWorker() bool { return slices.ContainsFunc(g.Frames, Frame.runsWorker) }

// runsWorker reports whether the function is the one with which dist.Spawn runs a worker.
func (f Frame) runsWorker() bool {
	return strings.HasPrefix(f.Function, library.Prefix+"dist.(*rank).run")
}

// IsOwn reports whether the function belongs to the program: not to the Go runtime, the standard
// library or goccl.
func (f Frame) IsOwn() bool {
	if library.Has(f.Function, f.File) {
		return false
	}
	first := f.Function[:strings.IndexAny(f.Function+".", "./")] // a domain is cut, too, and is in no list
	return first != "panic" && !slices.Contains(standardLibrary, first)
}

// standardLibrary are the first elements of the import paths of the standard library, and of what
// its functions are called in stacks. Files do not tell: programs built with -trimpath have no
// GOROOT.
var standardLibrary = strings.Fields(`archive bufio bytes cmp compress container context crypto database debug embed
	encoding errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin
	reflect regexp runtime slices sort strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak`)
