package ccltest

import (
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// report fails t if err is not nil: by it the rule of c was broken.
func report(t *testing.T, err error, c *check) {
	t.Helper()
	if err != nil {
		t.Error(failure(err, c, t.Name()))
	}
}

// failure says how the test called name failed, which rule was broken, and how to
// see it again, and then shows the evidence. An input that has just been found by
// fuzzing has no name yet: go test prints how to see that again.
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

// evidence is an error and what is too long to stand before its rule.
type evidence struct {
	error
	text string
}

func (e *evidence) Unwrap() error { return e.error }

// replay returns the command that runs the test called name and nothing else, from
// wherever its module can be seen. The flags are those by which the suite chooses
// its cases.
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

// testedPackage returns the path of the package whose test this is.
func testedPackage() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			return path
		}
	}
	return "."
}
