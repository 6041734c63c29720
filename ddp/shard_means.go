package ddp

import (
	"context"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/reduce"
)

// MeanOverShards returns the mean over all logical shards of values such as losses, with the same
// bits for any number of ranks. values are those of the shards that this rank hosts, one shard
// after the other, equally many for each. Without Options.LogicalShards each rank is a shard.
//
// All ranks call it, between the same steps. Its errors are those of Verify but for those of
// parameters that differ. Values that do not divide among this rank's shards are
// *ccl.InvalidArgumentError on this rank, and *ccl.MismatchError on the others.
func MeanOverShards[T float32 | float64](ctx context.Context, r *Reducer, values []T) ([]T, error) {
	if err := r.beginCheckpoint("MeanOverShards"); err != nil {
		return nil, err
	}
	defer r.comm.Release()

	t := r.logical.tree
	if t == nil {
		t = newShardTree(r.comm.Size(), r.comm.Rank(), r.comm.Size())
	}
	hosted := t.high - t.low
	if len(values)%hosted != 0 {
		return nil, inCall(r.comm.Reject(ctx, invalid("ddp.MeanOverShards", "%d values for the %d shards of this rank, of which each has equally many", len(values), hosted)))
	}

	mean := make([]T, len(values)/hosted)
	if err := foldAll(ctx, t, r.comm, values, mean, "ddp.MeanOverShards"); err != nil {
		return nil, inCall(err)
	}
	return mean, nil
}

// foldAll sets mean to the mean over all shards of the values of this rank's shards.
func foldAll[T float32 | float64](ctx context.Context, t *shardTree, c *ccl.Communicator, values, mean []T, key string) error {
	n := len(mean)
	counts, all := make([]int, c.Size()), make([]T, t.shards*n)
	for rank := range counts {
		low, high := ccl.BlockRange(t.shards, rank, c.Size())
		counts[rank] = (high - low) * n
	}
	if err := ccl.AllGatherV(ctx, c, values, all, counts, nil, ccl.WithLabel(key), ccl.WithKey(key)); err != nil || n == 0 {
		return err
	}
	reduce.FoldSlices(mean, slices.Collect(slices.Chunk(all, n)), nil, t.shards)
	return nil
}
