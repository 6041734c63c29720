package primitive_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/test/stress"
)

var (
	layouts = flag.Int("layouts", 60, "number of random layouts; one that fails with seed=N is run again by -seed N -layouts 1")
	seed    = flag.Uint64("seed", 1, "the first random layout")
)

// Random operators on random partitions and shapes do what their tables say, in both directions.
func TestRandomLayouts(t *testing.T) {
	const workers = 6
	for i := range uint64(*layouts) {
		t.Run(fmt.Sprint("seed=", *seed+i), func(t *testing.T) {
			everyWorld(t, workers, func(world *partition.Partition) error {
				return stress.NewLayout(*seed+i, workers).Run(bg, world.Communicator())
			})
		})
	}
}
