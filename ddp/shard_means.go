package ddp

import (
	"context"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
	"github.com/goccl/goccl/internal/reduce"
)

// MeanOverShards returns the mean over all logical shards of values such as losses, with the same
// bits for any number of ranks. values are those of the shards that this rank hosts, one shard
// after the other, equally many for each. Without Options.LogicalShards each rank is a shard.
//
// All ranks call it, between the same steps. Its errors are those of Verify but for those of
// parameters that differ; values that do not divide among this rank's shards are
// *ccl.InvalidArgumentError.
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
		return nil, invalid("ddp.MeanOverShards", "%d values for the %d shards of this rank, of which each has equally many", len(values), hosted)
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

// beginShardBuffers gives a shard the buffers with which the step began.
func (r *Reducer) beginShardBuffers(shard int) {
	l := &r.logical
	for i, b := range r.opts.Buffers {
		switch {
		case shard == l.tree.low && len(l.before) == i:
			l.before = append(l.before, b.elements.fresh())
			fallthrough
		case shard == l.tree.low:
			l.before[i].copyFrom(b.elements)
		default:
			b.elements.copyFrom(l.before[i])
		}
	}
}

// keepShardBuffers keeps the buffers of the current shard, which ends.
func (r *Reducer) keepShardBuffers() {
	l := &r.logical
	hosted := l.current - l.tree.low
	if hosted == len(l.after) {
		var fresh []elements
		for _, b := range r.opts.Buffers {
			fresh = append(fresh, b.elements.fresh())
		}
		l.after = append(l.after, fresh)
	}
	for i, b := range r.opts.Buffers {
		l.after[hosted][i].copyFrom(b.elements)
	}
}

// foldBuffers makes the buffers their means over all shards; those that have no floats, such as
// counters, become those of the first shard.
func (r *Reducer) foldBuffers(ctx context.Context) error {
	t := r.logical.tree
	if t == nil || len(r.opts.Buffers) == 0 {
		return nil
	}

	r.keepShardBuffers()
	for i, b := range r.opts.Buffers {
		var hosted []elements
		for _, after := range r.logical.after {
			hosted = append(hosted, after[i])
		}
		if err := b.elements.foldShards(ctx, t, r.comm, hosted); err != nil {
			return err
		}
	}
	return nil
}

func (v vector[T]) foldShards(ctx context.Context, t *shardTree, c *ccl.Communicator, hosted []elements) error {
	const key = "ddp buffers of shards"
	switch to := any([]T(v)).(type) {
	case []float32:
		return foldAll(ctx, t, c, joinElements(hosted, func(x float32) float32 { return x }), to, key)
	case []float64:
		return foldAll(ctx, t, c, joinElements(hosted, func(x float64) float64 { return x }), to, key)

	case []half.Float16:
		mean := make([]float32, len(to))
		err := foldAll(ctx, t, c, joinElements(hosted, half.Float16.Float32), mean, key)
		for i, x := range mean {
			to[i] = half.NewFloat16(x)
		}
		return err

	case []half.BFloat16:
		mean := make([]float32, len(to))
		err := foldAll(ctx, t, c, joinElements(hosted, half.BFloat16.Float32), mean, key)
		for i, x := range mean {
			to[i] = half.NewBFloat16(x)
		}
		return err
	}
	copy(v, hosted[0].(vector[T]))
	return v.broadcast(ctx, c, 0, ccl.WithKey(key))
}

// joinElements returns the elements of all, one after the other, as floats.
func joinElements[T Storable, S float32 | float64](all []elements, value func(T) S) (joined []S) {
	for _, e := range all {
		for _, x := range e.(vector[T]) {
			joined = append(joined, value(x))
		}
	}
	return joined
}
