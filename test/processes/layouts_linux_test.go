package processes

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/stress"
)

var randomLayouts = flag.Int("layouts", 60, "number of random layouts of operators; one that fails with seed=N is run again by -seed N -layouts 1")

// Random operators on random partitions and shapes give the right results between processes, forward and
// adjoint, and leave nothing.
func TestRandomLayouts(t *testing.T) {
	const ofJob = 20 // layouts, which a job runs one after the other
	for first := 0; first < *randomLayouts; first += ofJob {
		seed, count := *seed+uint64(first), min(ofJob, *randomLayouts-first)
		t.Run(fmt.Sprintf("seeds=%d-%d", seed, seed+uint64(count)-1), func(t *testing.T) {
			plays(t, 2+first/ofJob%3*2, part{Scene: "layouts", Seed: seed, Count: count})
		})
	}
}

// layouts runs random layouts, one after the other.
func (p *part) layouts(at func(string), _ *result) error {
	group, err := dist.Default()
	if err != nil {
		return err
	}
	for i := range uint64(p.Count) {
		at(fmt.Sprint("layout ", p.Seed+i))
		if err := stress.NewLayout(p.Seed+i, group.Size()).Run(context.Background(), group.Communicator()); err != nil {
			return fmt.Errorf("seed %d: %w", p.Seed+i, err)
		}
	}
	return nil
}
