package tool

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

const modulePath = "github.com/goccl/goccl"

// version describes the program in a line: the version of this module, its revision if the program
// was built in its repository, the version of Go, and the platform.
func version() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		info = &debug.BuildInfo{}
	}
	text := "goccl " + moduleVersion(info)
	if revision := measure.Revision(); info.Main.Path == modulePath && revision != "" {
		text += ", revision " + revision
	}
	return fmt.Sprintf("%s, %s, %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// moduleVersion returns the version of this module in a program, which can be a program of another
// module.
func moduleVersion(info *debug.BuildInfo) string {
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != modulePath {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version != "" {
			return m.Version
		}
	}
	return "(devel)" // as Go calls a directory without a version
}
