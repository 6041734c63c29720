package underseeds

import (
	"flag"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
)

// The names of these flags do not collide with those of a test that imports this package.
var (
	first = flag.Uint64("goccl.seed", 1, "the first seed of ccltest.Seeds and disttest.Seeds")
	count = flag.Int("goccl.count", 50, "so many seeds")
)

// Find runs the programs of the seeds that the flags select, and returns what is wrong with the
// first that fails.
func Find(t *testing.T, program func(seed uint64) error) error {
	t.Helper()
	for i := range *count {
		seed := *first + uint64(i)
		if err := run(t, seed, func() error { return program(seed) }); err != nil {
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

	tested := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		if path, ok := strings.CutSuffix(info.Path, ".test"); ok {
			tested = path
		}
	}
	tags := ""
	if interleave.IsOn {
		tags = " -tags interleave"
	}
	return fmt.Sprintf("go test%s -run '%s' %s -args -goccl.seed %d -goccl.count 1", tags, strings.Join(parts, "/"), tested, seed)
}
