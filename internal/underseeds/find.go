package underseeds

import (
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
// first that fails, also if it is t that has failed in it.
func Find(t *testing.T, program func(seed uint64) error) error {
	t.Helper()
	if interleave.IsOn {
		running.Lock()
		defer running.Unlock()
	}

	hadFailed := t.Failed()
	for i := range *count {
		seed := *first + uint64(i)
		err := run(t, seed, func() error { return program(seed) })
		if err == nil && t.Failed() && !hadFailed {
			err = errors.New("the test has failed, as the lines above say")
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w\nagain: %s", seed, err, command(t.Name(), seed))
		}
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
	return fmt.Sprintf("go test%s -run '%s' %s -args -goccl.seed %d -goccl.count 1", flags, strings.Join(parts, "/"), tested, seed)
}
