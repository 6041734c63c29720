package ccl

import (
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"runtime"

	"github.com/goccl/goccl/internal/library"
)

// position is a line of a program.
type position struct {
	file string // the full path
	line int
}

// String returns the line with the file and its directory, which are the same on all machines.
func (p *position) String() string {
	file := filepath.ToSlash(p.file)
	return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(file)), path.Base(file)), p.line)
}

// caller returns the line of the program that makes the call, nil if there is none on the stack:
// the first function that is not goccl's. If inKernel is set, or a panic is handled, functions
// above step are a kernel's.
func caller(inKernel bool) *position {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])

	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			inKernel = true
		case f.Function == stepFunction:
			inKernel = false
		case !inKernel && isProgram(f):
			return &position{f.File, f.Line}
		}

		if !more {
			return nil
		}
	}
}

// stepFunction is the name of engine.step, below which a kernel runs.
var stepFunction string

func init() { stepFunction = runtime.FuncForPC(reflect.ValueOf((*engine).step).Pointer()).Name() }

// isProgram reports whether a function belongs neither to goccl nor to Go.
func isProgram(f runtime.Frame) bool {
	return !library.Has(f.Function, f.File) && !library.IsStandard(f.Function, f.File)
}
