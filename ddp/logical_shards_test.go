package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
)

func init() { works["logical shards"] = logicalShards }

// fold is the definition of the order: of n shards the left subtree has the largest power of two below n.
func fold[S float32 | float64](x []S) S {
	if len(x) == 1 {
		return x[0]
	}
	left := 1
	for 2*left < len(x) {
		left *= 2
	}
	return fold(x[:left]) + fold(x[left:])
}

// shardMean is the definition of the mean over shards of gradients of a type.
func shardMean[T ddp.Float](x []T) T {
	if doubles, ok := any(x).([]float64); ok {
		return any(fold(doubles) / float64(len(x))).(T)
	}
	var wide []float32
	for _, g := range x {
		wide = append(wide, float32(toFloat(g)))
	}
	return ofFloat[T](float64(fold(wide) / float32(len(x))))
}

// logicalLengths are those of parameters: one that is reduced in place in float32, and some that share a bucket.
var logicalLengths = []int{3, 66_000, 0, 1, 40, 9, 2}

// logicalTraining is a training on V shards, from a step until another one; with a path, from the checkpoint there, which
// it writes at its end.
type logicalTraining struct {
	lengths     []int
	kind        string // of gradients
	shards      int
	from, until int
	path        string
}

// expected returns what so many steps of a training on V shards give, by the definition.
func expected[T ddp.Float](lengths []int, shards, steps int) (trained []float64) {
	var values [][]T
	for _, n := range lengths {
		values = append(values, make([]T, n))
	}
	gradientsOf(values, 0, 1000)
	for step := range steps {
		all := make([][][]T, shards)
		for s := range all {
			for _, n := range lengths {
				all[s] = append(all[s], make([]T, n))
			}
			gradientsOf(all[s], s, step)
		}
		for p := range values {
			for i := range values[p] {
				x := make([]T, shards)
				for s := range all {
					x[s] = all[s][p][i]
				}
				values[p][i] = ofFloat[T](toFloat(values[p][i]) - 0.1*toFloat(shardMean(x)))
			}
		}
	}
	for _, v := range values {
		for _, x := range v {
			trained = append(trained, toFloat(x))
		}
	}
	return trained
}

func trainLogical[T ddp.Float](c logicalTraining, rank int) (trained []float64, err error) {
	var params []ddp.Parameter
	var values, grads [][]T
	for i, n := range c.lengths {
		values, grads = append(values, make([]T, n)), append(grads, make([]T, n))
		var grad []T
		if c.kind != "views" {
			grad = grads[i]
		}
		params = append(params, ddp.Param(fmt.Sprint("p", i), values[i], grad))
	}
	gradientsOf(values, rank, 1000) // rank 0's count
	r, err := ddp.New(bg, world(), params, ddp.Options{LogicalShards: c.shards, FirstBucketBytes: 30, BucketBytes: 100})
	if err != nil {
		return nil, err
	}
	if c.path != "" && c.from > 0 {
		if err := r.Load(bg, c.path, nil); err != nil {
			return nil, err
		}
	}
	for step := c.from; step < c.until; step++ {
		for shard := range r.Shards() {
			for i := range grads {
				switch c.kind {
				case "fresh":
					grads[i] = make([]T, len(grads[i]))
				case "views":
					grads[i] = ddp.Grad[T](r, i)
				}
			}
			gradientsOf(grads, shard, step)
			for i := range grads { // not in the order of the buckets
				if c.kind == "fresh" {
					ddp.ReadyGrad(r, i, grads[i])
				} else {
					r.Ready(i)
				}
			}
		}
		if err := r.Wait(bg); err != nil {
			return nil, err
		}
		for p := range values {
			for i, g := range grads[p] {
				values[p][i] = ofFloat[T](toFloat(values[p][i]) - 0.1*toFloat(g))
			}
		}
	}
	if c.path != "" {
		if err := r.Save(bg, c.path, nil); err != nil {
			return nil, err
		}
	}
	if err := r.Verify(bg); err != nil {
		return nil, err
	}
	for _, v := range values {
		for _, x := range v {
			trained = append(trained, toFloat(x))
		}
	}
	return trained, r.Close()
}

// Weights are those of the definition for any number of ranks, bit by bit, of all types, with gradients of all kinds.
func TestLogicalShards(t *testing.T) { everywhere(t, "logical shards", 1, succeeded) }

func logicalShards(rank, ranks int, _ *outcome) error {
	var errs []error
	for _, shards := range []int{8, 12, 16} {
		if shards < ranks {
			continue
		}
		errs = append(errs, sameAsExpected[float32](rank, shards, "views", "own", "fresh"))
		errs = append(errs, sameAsExpected[float64](rank, shards, "own"), sameAsExpected[half.Float16](rank, shards, "views"), sameAsExpected[half.BFloat16](rank, shards, "own"))
	}
	return errors.Join(errs...)
}

func sameAsExpected[T ddp.Float](rank, shards int, kinds ...string) error {
	lengths := slices.Clone(logicalLengths)
	if shards != 8 || ccl.DTypeOf[T]() != ccl.Float32 {
		lengths[1] = 700 // it is not reduced in place
	}
	want := expected[T](lengths, shards, 2)
	for _, kind := range kinds {
		got, err := trainLogical[T](logicalTraining{lengths: lengths, kind: kind, shards: shards, until: 2}, rank)
		if err != nil {
			return fmt.Errorf("%d shards of %T, %s: %w", shards, *new(T), kind, err)
		}
		for i, x := range got {
			if math.Float64bits(x) != math.Float64bits(want[i]) {
				return fmt.Errorf("%d shards of %T, %s: element %d is %v, want %v", shards, *new(T), kind, i, x, want[i])
			}
		}
	}
	return nil
}

// Weights are those of the definition on each number of ranks up to 8, and where each shard has a rank.
func TestLogicalShardsByRanks(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 5, 6, 7, 8, 12} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			require.NoError(t, onRanks(t, ranks, func(rank int) error { return logicalShards(rank, ranks, nil) }))
		})
	}
}

// Buffers and losses are means over shards with the same bits on each number of ranks; counters are those of a shard.
func TestLogicalShardBuffers(t *testing.T) {
	const shards = 12
	var want []float64
	for _, ranks := range []int{1, 2, 3, 5, 8, 12} {
		all := make([][]float64, ranks)
		require.NoError(t, onRanks(t, ranks, func(rank int) error {
			mean, wide, count, w := []float32{1, 2}, []half.BFloat16{half.NewBFloat16(3)}, []int64{7}, make([]float64, 1)
			r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, nil)}, ddp.Options{LogicalShards: shards, Buffers: []ddp.Tensor{
				ddp.Buffer("mean", mean), ddp.Buffer("wide", wide), ddp.Buffer("count", count),
			}})
			if err != nil {
				return err
			}
			for step := range 2 {
				var losses []float64
				for shard := range r.Shards() {
					random := ddp.ShardRand(5, step, shard)
					if count[0] != int64(7+step) {
						return fmt.Errorf("step %d, shard %d begins with the counter %d", step, shard, count[0])
					}
					mean[0] += random.Float32()
					mean[1] *= random.Float32()
					wide[0] = half.NewBFloat16(wide[0].Float32() + random.Float32())
					count[0]++
					losses = append(losses, random.Float64(), 1)
					r.Ready(0)
				}
				if err := r.Wait(bg); err != nil {
					return err
				}
				loss, err := ddp.MeanOverShards(bg, r, losses)
				if err != nil {
					return err
				}
				all[rank] = append(all[rank], float64(mean[0]), float64(mean[1]), toFloat(wide[0]), float64(count[0]), loss[0], loss[1])
			}
			return r.Close()
		}))
		if want == nil {
			want = all[0]
			require.Equal(t, []float64{9, 1}, []float64{want[9], want[11]})
		}
		for rank := range all {
			require.Equal(t, want, all[rank], "rank %d of %d", rank, ranks)
		}
	}
}

// A training whose number of ranks changes at every checkpoint gives what one on one number of ranks gives. A file of
// another number of shards is refused.
func TestLogicalShardsResume(t *testing.T) {
	c := logicalTraining{lengths: []int{3, 700, 0, 9}, kind: "own", shards: 8, path: filepath.Join(t.TempDir(), "weights.safetensors")}
	var got []float64
	for _, ranks := range []int{1, 3, 2, 8, 5, 4, 7} {
		c.until++
		require.NoError(t, onRanks(t, ranks, func(rank int) error {
			trained, err := trainLogical[float32](c, rank)
			if rank == 0 {
				got = trained
			}
			return err
		}))
		c.from++
	}
	require.Equal(t, expected[float32](c.lengths, 8, 7), got)

	c.shards, c.until = 4, c.until+1
	err := onRanks(t, 2, func(rank int) error {
		_, err := trainLogical[float32](c, rank)
		return err
	})
	require.ErrorContains(t, err, `it is of a training on "8" logical shards, and Options.LogicalShards is 4`)
	c.shards = 0 // any program may load it
	require.NoError(t, onRanks(t, 1, func(rank int) error {
		_, err := trainLogical[float32](c, rank)
		return err
	}))
}

// Elements of buffers that no shard changes keep their bits, also where their mean would round, and infinities.
func TestLogicalShardsKeepBuffers(t *testing.T) {
	for _, ranks := range []int{1, 2, 3} {
		require.NoError(t, onRanks(t, ranks, func(int) error {
			mask := []float32{-math.MaxFloat32, float32(math.Inf(-1)), 0.1, 0.7, 0}
			want := slices.Clone(mask)
			r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", make([]float32, 1), nil)}, ddp.Options{LogicalShards: 7, Buffers: []ddp.Tensor{ddp.Buffer("mask", mask)}})
			if err != nil {
				return err
			}
			for step := range 20 {
				for shard := range r.Shards() {
					mask[4] += float32(shard) // the mean is 3
					r.Ready(0)
				}
				if err := r.Wait(bg); err != nil {
					return err
				}
				want[4] = float32(3 * (step + 1))
			}
			return errors.Join(equal("mask", fmt.Sprint(mask), fmt.Sprint(want)), r.Close())
		}))
	}
}

// Values of a wrong length fail the call on all ranks, and no later call of another length takes its place.
func TestMeanOverShardsRejected(t *testing.T) {
	require.NoError(t, onRanks(t, 2, func(rank int) error {
		r, err := newOfTwo(4)
		if err != nil {
			return err
		}
		if _, err := ddp.MeanOverShards(bg, r, make([]float64, 2+rank)); rank == 1 {
			if err := isInvalid(err); err != nil {
				return err
			}
		} else if _, ok := errors.AsType[*ccl.MismatchError](err); !ok {
			return fmt.Errorf("rank 0 gets %w", err)
		}
		_, err = ddp.MeanOverShards(bg, r, []float64{1, 1})
		return errors.Join(contains(err, "3 values for the 2 shards of this rank"), r.Close())
	}))
}

// A configuration without the entry pairwise, and one of another module, are refused with what is wrong.
func TestLogicalShardsByConfiguration(t *testing.T) {
	for text, entries := range map[string]string{
		"add the entry `pairwise: {module: pairwise}`": "{direct: {module: direct}}",
		"has the module ring":                          "{direct: {module: direct}, pairwise: {module: ring}}",
		"needs the algorithm pairwise":                 "{direct: {module: direct}, pairwise: {module: pairwise, world_size: 4}}",
	} {
		path := filepath.Join(t.TempDir(), "ccl.yaml")
		require.NoError(t, os.WriteFile(path, []byte("version: 1\nalgorithms: "+entries+"\nrules: [{algorithm: direct}]\n"), 0o600))
		err := dist.Spawn(func(context.Context, int) error {
			if err := dist.InitProcessGroup("ccl", dist.WithConfigFile(path)); err != nil {
				return err
			}
			_, err := newOfTwo(2)
			return err
		}, dist.WithRanks(2))
		require.ErrorContains(t, err, text)
	}
}

// What logical shards exclude is refused, on all ranks, with what to do.
func TestLogicalShardsRefused(t *testing.T) {
	require.NoError(t, onRanks(t, 2, func(int) error {
		for text, opts := range map[string]ddp.Options{
			"LogicalShards is 1 for 2 ranks": {LogicalShards: 1},
			"LogicalShards is -1":            {LogicalShards: -1},
			"at most 1048576 are possible":   {LogicalShards: 1 << 40},
			"excludes Shard":                 {LogicalShards: 2, Shard: true},
			"excludes Hooks":                 {LogicalShards: 2, Hooks: ddp.Hooks{Float32: ddp.BFloat16()}},
			"excludes FindUnused":            {LogicalShards: 2, StaticGraph: true},
			"excludes BroadcastBuffers":      {LogicalShards: 2, BroadcastBuffers: true},
		} {
			_, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", make([]float32, 1), nil)}, opts)
			if err := errors.Join(isInvalid(err), contains(err, text)); err != nil {
				return err
			}
		}

		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", make([]float32, 1), nil), ddp.Param("b", make([]float32, 1), nil)}, ddp.Options{LogicalShards: 4})
		if err != nil {
			return err
		}
		_, outer := ddp.NewOuter(r, 1, 0)
		_, uneven := ddp.MeanOverShards(bg, r, make([]float32, 3))
		for _, err := range []error{
			outer, uneven, r.AverageParameters(bg),
			r.NoSync(func() error { return nil }),
		} {
			if err := isInvalid(err); err != nil {
				return err
			}
		}
		return r.Close()
	}))
}

// A shard without a gradient, a loop that ends early, and none at all fail the step on all ranks.
func TestLogicalShardsUnready(t *testing.T) {
	for _, c := range []struct {
		name        string
		loop        func(r *ddp.Reducer)
		shard, lack int
	}{
		{"no gradient", func(r *ddp.Reducer) {
			for shard := range r.Shards() {
				r.Ready(0)
				if shard != 2 {
					r.Ready(1)
				}
			}
		}, 2, 1},
		{"no gradient of the last shard", func(r *ddp.Reducer) {
			for shard := range r.Shards() {
				r.Ready(1)
				if shard != 3 {
					r.Ready(0)
				}
			}
		}, 3, 1},
		{"ends early", func(r *ddp.Reducer) {
			for range r.Shards() {
				r.Ready(0)
				r.Ready(1)
				break
			}
		}, 3, 2},
		{"ends within a shard", func(r *ddp.Reducer) {
			for range r.Shards() {
				r.Ready(1)
				break
			}
		}, 2, 1},
		{"no loop", func(*ddp.Reducer) {}, 2, 2},
	} {
		for _, ranks := range []int{2, 3} {
			require.NoError(t, onRanks(t, ranks, func(rank int) error {
				shards := []int{0, 0, 4, 5}[ranks] // rank 1 has 2 and 3
				r, err := newOfTwo(shards)
				if err != nil {
					return err
				}
				if rank == 1 {
					c.loop(r)
				} else {
					readyShards(r)
				}
				err = r.Wait(bg)
				if rank != 1 {
					_, ok := errors.AsType[*ccl.MismatchError](err)
					return errors.Join(equal("rejected", ok, true), r.Close())
				}
				if e, ok := errors.AsType[*ddp.UnreadyError](err); !ok || e.Shard != c.shard || len(e.Parameters) != c.lack {
					return fmt.Errorf("%s, %d ranks: the error of rank 1 is %w", c.name, ranks, err)
				}
				return r.Close()
			}))
		}
	}
}

// newOfTwo makes a Reducer of two parameters, each of which is a bucket.
func newOfTwo(shards int) (*ddp.Reducer, error) {
	params := []ddp.Parameter{ddp.Param("w", make([]float32, 1), nil), ddp.Param("b", make([]float32, 1), nil)}
	return ddp.New(bg, world(), params, ddp.Options{LogicalShards: shards, FirstBucketBytes: 1, BucketBytes: 1})
}

func readyShards(r *ddp.Reducer) {
	for range r.Shards() {
		r.Ready(0)
		r.Ready(1)
	}
}

// A second loop in a step, and Ready outside a loop, are mistakes of the rank; the group lives on.
func TestLogicalShardsMistakes(t *testing.T) {
	require.NoError(t, onRanks(t, 2, func(rank int) error {
		r, err := newOfTwo(4)
		if err != nil {
			return err
		}
		readyShards(r)
		if rank == 0 {
			readyShards(r)
		}
		if err := r.Wait(bg); rank == 0 {
			if err := errors.Join(isInvalid(err), contains(err, "a second loop over Shards")); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}

		if rank == 1 {
			r.Ready(0)
		}
		readyShards(r)
		if err := r.Wait(bg); rank == 1 {
			if err := errors.Join(isInvalid(err), contains(err, "outside a loop over Shards")); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
		readyShards(r)
		return errors.Join(r.Wait(bg), r.Close())
	}))
}

// Without the option each rank is a shard.
func TestShardsWithoutOption(t *testing.T) {
	require.NoError(t, onRanks(t, 3, func(rank int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", make([]float32, 1), nil)}, ddp.Options{})
		if err != nil {
			return err
		}
		shards := slices.Collect(r.Shards())
		mean, err := ddp.MeanOverShards(bg, r, []float64{float64(rank)})
		if err := errors.Join(err, r.Close(), dist.DestroyProcessGroup()); err != nil {
			return err
		}
		return errors.Join(equal("shards", fmt.Sprint(shards), fmt.Sprint([]int{rank})), equal("mean", mean[0], 1), equal("after Close", len(slices.Collect(r.Shards())), 0))
	}))
}

// onRanks runs work on ranks that are goroutines, and returns their errors.
func onRanks(t *testing.T, ranks int, work func(rank int) error) error {
	t.Helper()
	return errors.Join(spawn(t, ranks, work)...)
}

// isInvalid returns an error if err is not that of an argument.
func isInvalid(err error) error {
	if _, ok := errors.AsType[*ccl.InvalidArgumentError](err); !ok {
		return fmt.Errorf("want an error of an argument, got %w", err)
	}
	return nil
}

func contains(err error, text string) error {
	if err == nil || !containsAll(err.Error(), text) {
		return fmt.Errorf("%q is not in %w", text, err)
	}
	return nil
}

// The samples of a shard in a step, and their order, do not depend on the ranks: they are those of a Sampler and a
// Loader that have as many ranks as there are shards. A loader may begin at any step.
func TestShardsOfLoader(t *testing.T) {
	const epoch, batch = 3, 4
	load := func(_ context.Context, indices []int) ([]int, error) { return slices.Clone(indices), nil }
	for _, shards := range []int{1, 5, 8} {
		for _, samples := range []int{0, 3, 61, 64, 160} {
			for _, dropLast := range []bool{false, true} {
				var want [][][]int // by shard and step
				for shard := range shards {
					l := ddp.Loader[[]int]{Sampler: ddp.Sampler{Samples: samples, Ranks: shards, Rank: shard, Seed: 2, DropLast: dropLast}, Batch: batch, Load: load}
					var batches [][]int
					for b, err := range l.Epoch(bg, epoch, 0) {
						require.NoError(t, err)
						batches = append(batches, b)
					}
					want = append(want, batches)
				}
				for ranks := 1; ranks <= shards; ranks++ {
					shard := 0
					for rank := range ranks {
						l := ddp.Loader[[]int]{Sampler: ddp.Sampler{Samples: samples, Ranks: ranks, Rank: rank, Shards: shards, Seed: 2, DropLast: dropLast}, Batch: batch, Load: load}
						require.Equal(t, len(want[0]), l.Steps())
						own := shards / ranks
						if rank < shards%ranks {
							own++
						}
						for from := 0; from <= l.Steps(); from += 2 {
							var batches, expected [][]int
							for b, err := range l.Epoch(bg, epoch, from) {
								require.NoError(t, err)
								batches = append(batches, b)
							}
							for step := from; step < l.Steps(); step++ {
								for i := range own {
									expected = append(expected, want[shard+i][step])
								}
							}
							require.Equal(t, expected, batches, "rank %d of %d, from step %d", rank, ranks, from)
						}
						shard += own
					}
				}
			}
		}
	}
	require.ErrorContains(t, ddp.Sampler{Ranks: 3, Shards: 2}.Check(), "each rank needs one")
	require.ErrorContains(t, ddp.Sampler{Ranks: 3, Shards: 4, Uneven: true}.Check(), "equally many")
}
