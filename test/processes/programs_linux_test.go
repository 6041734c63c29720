package processes

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/stress"
)

var randomPrograms = flag.Int("programs", 18, "number of random programs; one that fails with seed=N is run again by -seed N -programs 1")

// Random programs of all calls, on groups that overlap, give the right results between processes,
// and leave nothing.
func TestRandomPrograms(t *testing.T) {
	for i := range uint64(*randomPrograms) {
		seed := *seed + i
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			ranks := 2 + int(seed%3)
			plays(t, ranks, part{Scene: "program", Seed: seed, Count: []int{100, 100, 300}[seed/3%3]})
		})
	}
}

// plays runs a scene on so many ranks, which succeeds on all and leaves nothing.
func plays(t *testing.T, ranks int, p part) {
	t.Helper()
	p.Config, p.Rounds, p.Timeout = yamlFor(ranks), 1, patience/2
	j := start(t, ranks, p, nil)
	for _, r := range j.ranks {
		if got := r.sound(); got.Err != "" {
			t.Errorf("rank %d: %s", r.number, got.Err)
		}
	}
	j.leavesNothing()
}

// program runs a random program.
func (p *part) program(at func(string), _ *result) error {
	group, err := dist.Default()
	if err != nil {
		return err
	}
	at("program")
	return stress.New(p.Seed, stress.Options{
		Ranks: group.Size(), Events: p.Count, Longest: []int{100, 5000, 1 << 17}[p.Seed%7%3],
		Algorithms: []string{"direct", "ring", "tree"},
	}).Run(context.Background(), group.Communicator())
}
