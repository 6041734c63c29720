package ccltest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// report fails t if err, a violation of the rule of c, is not nil.
func report(t *testing.T, err error, c *check) {
	t.Helper()
	if err != nil {
		t.Error(failure(err, c, t.Name()) + picture(t, err))
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
		if e.text != "" {
			text += "\n" + e.text
		}
		if e.chart != nil {
			text += "\n" + e.chart.text()
		}
	}

	return text
}

// pictureFile is the name of the picture among the artifacts of a test.
const pictureFile = "messages.svg"

// picture draws the messages of a failed call where go test keeps artifacts, and says where that
// is.
func picture(t *testing.T, err error) string {
	e, ok := errors.AsType[*evidence](err)
	if !ok || e.chart == nil {
		return ""
	}
	if artifacts := flag.Lookup("test.artifacts"); artifacts == nil || artifacts.Value.String() != "true" {
		return "\npicture: the same command with -artifacts draws these messages"
	}
	file := filepath.Join(t.ArtifactDir(), pictureFile)
	if err := os.WriteFile(file, []byte(e.chart.draw(t.Name())), 0o644); err != nil {
		return "\npicture: " + err.Error()
	}
	return "\npicture: " + file
}

// evidence is an error with a text that is too long to precede the rule, and with messages.
type evidence struct {
	error
	text  string
	chart *chart // or nil
}

func (e *evidence) Unwrap() error { return e.error }

// withEvidence adds evidence to err. What err has already stays.
func withEvidence(err error, text string, c *chart) error {
	if e, ok := errors.AsType[*evidence](err); ok {
		text = cmp.Or(e.text, text)
		c = cmp.Or(e.chart, c)
	}
	return &evidence{err, text, c}
}

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
