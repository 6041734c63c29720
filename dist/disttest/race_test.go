//go:build interleave && race

package disttest

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

var raceProgram = flag.String("race-program", "", "the program that TestRaceProgram runs")

// racy are programs in which ranks 1 and 2 share what nothing orders, with what is said of the rank that comes later.
var racy = map[string]struct {
	program func(shared *int, rank int) error
	want    string
}{
	"goes on": {func(shared *int, rank int) error {
		if rank > 0 {
			*shared++
		}
		return sum()
	}, `rank [12] is in dist\.\w+ at disttest/\w+\.go:\d+`},

	"ends": {func(shared *int, rank int) error {
		if rank > 0 {
			*shared++
			return errors.New("no data")
		}
		return nil
	}, `rank [12]( is in dist\.\w+ at disttest/\w+\.go:\d+)?`},

	"own goroutine": {func(shared *int, rank int) error {
		if rank != 1 {
			return sum()
		}
		done := make(chan struct{}, 1)
		dist.Go(func() {
			*shared++
			done <- struct{}{}
		})
		*shared++
		<-done
		return sum()
	}, `(a goroutine of )?rank 1( is in .*)?`},
}

// TestRaceProgram is the child of TestRaceNamesItsRank.
func TestRaceProgram(t *testing.T) {
	r, ok := racy[*raceProgram]
	if !ok {
		t.Skip("a child of TestRaceNamesItsRank")
	}
	shared := 0
	t.Fatal(find(t, 3, func(ctx context.Context, rank int) error {
		return withGroup(func(rank int) error { return r.program(&shared, rank) })(ctx, rank)
	}))
}

// A race is found in some seed, and named by the rank that comes later, and by no other one.
func TestRaceNamesItsRank(t *testing.T) {
	for name, r := range racy {
		out, err := exec.Command(os.Args[0], "-test.run", "^TestRaceProgram$", "-race-program", name).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "WARNING: DATA RACE", name)
		require.Regexp(t, `this goroutine has made the later access\n\s*`+r.want+`\n\s*again: go test -race -tags interleave `, string(out), name)
	}
}
