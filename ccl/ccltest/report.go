package ccltest

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// report fails t if err, a violation of the rule of c, is not nil.
func report(t *testing.T, err error, c *check) {
	t.Helper()
	if err != nil {
		t.Error(failure(err, c, t.Name()))
	}
}

// failure describes the failure of the test called name: the error, the broken rule, the
// command that repeats it, and the evidence. An input that fuzzing has just found has no
// name yet; go test prints how to repeat that.
func failure(err error, c *check, name string) string {
	text := fmt.Sprintf("%v\nrule: %s: %s", err, c.name, c.rule)
	if strings.Contains(name, "/") {
		text += "\nagain: " + replay(name)
	}
	if e, ok := errors.AsType[*evidence](err); ok {
		text += "\n" + e.text
	}
	return text
}

// evidence is an error with a text that is too long to precede the rule.
type evidence struct {
	error
	text string
}

func (e *evidence) Unwrap() error { return e.error }

// replay returns the command that runs only the test called name, from any directory of its
// module, with the flags on which the suite's choice of cases depends.
func replay(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	command := "go test"
	if raceEnabled {
		command += " -race"
	}
	if testing.Short() {
		command += " -short"
	}
	return fmt.Sprintf("%s -run '%s' %s", command, strings.Join(parts, "/"), testedPackage())
}

// testedPackage returns the path of the package under test.
func testedPackage() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			return path
		}
	}
	return "."
}
