package partition_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
)

var bg = context.Background()

// everyWorld runs a worker function on each rank of a new group, for every kind of transport.
func everyWorld(t *testing.T, ranks int, worker func(world *partition.Partition) error) {
	t.Helper()
	partitiontest.Workers(t, ranks, func(_ context.Context, world *partition.Partition) error { return worker(world) })
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
