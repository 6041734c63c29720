package partition_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
)

var bg = context.Background()

// everyWorld runs a worker function on each rank of a new group, for every kind of transport.
func everyWorld(t *testing.T, ranks int, worker func(world *partition.Partition) error) {
	t.Helper()
	for name, connect := range map[string]func(n int) ([]transport.Endpoint, error){
		"poll":  func(n int) ([]transport.Endpoint, error) { return local.NewWaiting(n, local.Poll), nil },
		"park":  func(n int) ([]transport.Endpoint, error) { return local.NewWaiting(n, local.Park), nil },
		"arena": func(n int) ([]transport.Endpoint, error) { return shm.NewHeap(n, shm.SmallestGeometry(n)) },
	} {
		t.Run(name, func(t *testing.T) {
			eps, err := connect(ranks)
			require.NoError(t, err)
			ended := make(chan error, ranks)
			for r, ep := range eps {
				go func() { ended <- named(r, work(ep, worker)) }()
			}
			var errs []error
			for range eps {
				errs = append(errs, <-ended)
			}
			require.NoError(t, errors.Join(errs...))
		})
	}
}

func work(ep transport.Endpoint, worker func(*partition.Partition) error) error {
	c, err := ccl.New(bg, ep)
	if err != nil {
		return err
	}
	defer c.Close()
	world, err := partition.New(bg, c)
	if err != nil {
		return err
	}
	defer world.Close()
	if err := worker(world); err != nil {
		c.Abort(err) // the others would wait
		return err
	}
	return c.Barrier(bg) // no worker leaves early
}

func named(rank int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("worker %d: %w", rank, err)
}

// among returns the partition of some workers of the world with a shape.
func among(world *partition.Partition, workers []int, shape ...int) (*partition.Partition, error) {
	p, err := world.Inclusive(bg, workers)
	if err != nil {
		return nil, err
	}
	return p.Cartesian(bg, shape...)
}

// span returns from to end-1.
func span(from, end int) (all []int) {
	for i := from; i < end; i++ {
		all = append(all, i)
	}
	return all
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
