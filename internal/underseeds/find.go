package underseeds

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
)

// The names of these flags do not collide with those of a test that imports this package.
var (
	first = flag.Uint64("goccl.seed", 1, "the first seed of ccltest.Seeds and disttest.Seeds")
	count = flag.Int("goccl.count", 50, "so many seeds")
)

// running lets tests that are parallel to each other run one after the other under the build tag.
var running sync.Mutex

// Find runs the programs of the seeds that the flags select, and returns what is wrong with the
// first that fails, also if it is t that has failed in it. One that prints nothing, isSilent, is
// run again often, for a picture with few switches from rank to rank.
func Find(t *testing.T, isSilent bool, program func(seed uint64) error) error {
	t.Helper()
	if interleave.IsOn {
		running.Lock()
		defer running.Unlock()
	} else {
		t.Log("the machine chooses the order of steps; go test -tags interleave lets seeds choose it")
	}

	hadFailed := t.Failed()
	for i := range *count {
		seed := *first + uint64(i)
		job := func() error { return program(seed) }
		err := run(t, seed, job)
		shown := ""

		switch {
		case t.Failed() && !hadFailed:
			err = cmp.Or(err, errors.New("the test has failed, as the lines above say"))
		case err == nil:
			continue
		default:
			shown = picture(t, seed, isSilent, err, job)
		}
		return fmt.Errorf("seed %d: %w\nagain: %s%s", seed, err, command(t.Name(), seed), shown)
	}
	return nil
}

// command returns the command that runs the program of a seed of a test.
func command(name string, seed uint64) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}

	tested, flags := ".", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			tested = path
		}
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				flags = " -race"
			}
		}
	}

	if interleave.IsOn {
		flags += " -tags interleave"
	}
	return fmt.Sprintf("go test%s -run '%s' %s -args -goccl.seed %d -goccl.count 1", flags, strings.ReplaceAll(strings.Join(parts, "/"), "'", `'\''`), tested, seed)
}
