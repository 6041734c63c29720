// Package library knows which functions on a stack are goccl's. The others tell a user where in the
// program an error came from.
//
// # Model
//
// A function belongs to the directory that follows the module's path in its name. goccl's
// directories that programs import are the library; its commands, examples and benchmarks are
// programs, and so are tests.
package library

import (
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// Prefix begins the names of goccl's functions.
const Prefix = "github.com/goccl/goccl/"

// rooms are the directories of goccl that programs import, and what the conformance suite makes its
// calls with. Its commands, examples and tests are programs.
var rooms = []string{
	"algorithms", "bytesize", "ccl", "ddp", "dist", "half", "internal", "launch", "partition", "primitive", "test/calls", "topology", "transport",
}

// Has reports whether a function, with its name and file as in a stack trace, is goccl's.
func Has(function, file string) bool {
	inside, isGoccl := strings.CutPrefix(function, Prefix)
	return isGoccl && !strings.HasSuffix(file, "_test.go") && slices.ContainsFunc(rooms, func(room string) bool {
		rest, found := strings.CutPrefix(inside, room)
		return found && rest != "" && (rest[0] == '.' || rest[0] == '/')
	})
}

// sources is the folder of the standard library, "" if it is not in stack traces: with -trimpath.
var sources = func() string {
	inRuntime := runtime.FuncForPC(reflect.ValueOf(runtime.GC).Pointer())
	file, _ := inRuntime.FileLine(inRuntime.Entry())
	folder, found := strings.CutSuffix(path.Dir(filepath.ToSlash(file)), "/src/runtime")
	if !found {
		return ""
	}
	return folder + "/src/"
}()

// IsStandard reports whether a function, with its name and file as in a stack trace, is the Go
// runtime's or of the standard library. Of the latter it knows none if the program was built with
// -trimpath.
func IsStandard(function, file string) bool {
	return strings.HasPrefix(function, "runtime.") || sources != "" && strings.HasPrefix(filepath.ToSlash(file), sources)
}
