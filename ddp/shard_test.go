package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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

func init() { works["sharded"] = sharded }

// A sharding is a training by a random model, whose optimizer has state of float64.
type sharding struct {
	adam, shard, views, fresh bool
	opts                      ddp.Options
}

// shardLengths are those of the parameters: an empty one, one that is reduced in place in float32 and float64, and some
// that share a bucket.
var shardLengths = []int{3, 70_000, 0, 1, 40, 9, 2}

// toFloat and ofFloat convert elements.
func toFloat[T ddp.Float](x T) float64 {
	switch x := any(x).(type) {
	case float32:
		return float64(x)
	case float64:
		return x
	case half.Float16:
		return float64(x.Float32())
	default:
		return float64(x.(half.BFloat16).Float32())
	}
}

func ofFloat[T ddp.Float](x float64) (y T) {
	switch p := any(&y).(type) {
	case *float32:
		*p = float32(x)
	case *float64:
		*p = x
	case *half.Float16:
		*p = half.NewFloat16(float32(x))
	case *half.BFloat16:
		*p = half.NewBFloat16(float32(x))
	}
	return y
}

// rule is the step of an optimizer on slices: SGD with momentum, or Adam.
func rule[T ddp.Float](adam bool, values, grads []T, first, second []float64, step int) {
	for i, g := range grads {
		v, g := toFloat(values[i]), toFloat(g)
		if !adam {
			first[i] = 0.9*first[i] + g
			values[i] = ofFloat[T](v - 0.1*first[i])
			continue
		}
		first[i] = 0.9*first[i] + 0.1*g
		second[i] = 0.999*second[i] + 0.001*g*g
		a, b := first[i]/(1-math.Pow(0.9, float64(step))), second[i]/(1-math.Pow(0.999, float64(step)))
		values[i] = ofFloat[T](v - 0.01*a/(math.Sqrt(b)+1e-8))
	}
}

// gradientsOf fills gradients of a rank and a step, whose sums depend on the order.
func gradientsOf[T ddp.Float](grads [][]T, rank, step int) {
	random := rand.New(rand.NewPCG(uint64(rank), uint64(step)))
	for _, g := range grads {
		for i := range g {
			g[i] = ofFloat[T](random.NormFloat64())
		}
	}
}

// trainShards trains and returns the parameters. With plain the optimizer is a loop over all gradients, without Step.
func trainShards[T ddp.Float](c sharding, rank, ranks int, plain bool) (trained []float64, err error) {
	var params []ddp.Parameter
	var values, grads [][]T
	total := 0
	lengths := slices.Clone(shardLengths)
	if c.views || c.opts.FindUnused || c.opts.StaticGraph || c.opts.Hooks.Float32 != nil || ccl.DTypeOf[T]().Size() < 4 {
		lengths[1] = 700 // it is not reduced in place
	}
	for i, n := range lengths {
		values, grads = append(values, make([]T, n)), append(grads, make([]T, n))
		total += n
		if grad := grads[i]; c.views {
			params = append(params, ddp.Param(fmt.Sprint("p", i), values[i], nil))
		} else {
			params = append(params, ddp.Param(fmt.Sprint("p", i), values[i], grad))
		}
	}
	gradientsOf(values, rank, 1000) // rank 0's count
	c.opts.FirstBucketBytes, c.opts.BucketBytes, c.opts.Shard = 30, 100, c.shard
	r, err := ddp.New(bg, world(), params, c.opts)
	if err != nil {
		return nil, err
	}
	first, err := ddp.NewOptimizerState[float64](r, "first")
	if err != nil {
		return nil, err
	}
	second, err := ddp.NewOptimizerState[float64](r, "second")
	if err != nil {
		return nil, err
	}
	updated := 0
	for step := range 5 {
		for i := range grads {
			switch {
			case c.fresh:
				grads[i] = make([]T, len(grads[i]))
			case c.views:
				grads[i] = ddp.Grad[T](r, i)
			}
		}
		gradientsOf(grads, rank, step)
		for i := range grads { // not in the order of the buckets
			if c.fresh {
				ddp.ReadyGrad(r, i, grads[i])
			} else if !c.opts.FindUnused || i != 4 {
				r.Ready(i)
			}
		}
		if err := r.Wait(bg); err != nil {
			return nil, err
		}
		if plain {
			for i := range grads {
				if !c.opts.FindUnused || i != 4 {
					rule(c.adam, values[i], grads[i], first[i], second[i], step+1)
				}
			}
			continue
		}
		updated = 0
		err := ddp.Step(bg, r, func(p ddp.Part[T]) {
			if c.opts.FindUnused && p.Parameter == 4 {
				return
			}
			rule(c.adam, p.Values, p.Gradient, first[p.Parameter], second[p.Parameter], step+1)
			updated += len(p.Values)
		})
		if err != nil {
			return nil, err
		}
	}
	if c.shard && !plain {
		if limit := total/ranks + r.Stats().Buckets; updated > limit {
			return nil, fmt.Errorf("rank %d updates %d of %d elements, want at most %d", rank, updated, total, limit)
		}
		kept := 0
		for i := range first {
			kept += len(first[i])
		}
		if limit := total/ranks + r.Stats().Buckets; kept > limit {
			return nil, fmt.Errorf("rank %d keeps state of %d of %d elements, want at most %d", rank, kept, total, limit)
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

// Ranks that update a part each have the parameters of ranks that update all, bit by bit: of SGD and of Adam, of all
// types, with gradients of all kinds.
func TestSharded(t *testing.T) { everywhere(t, "sharded", 1, succeeded) }

func sharded(rank, ranks int, _ *outcome) error {
	for _, c := range []sharding{
		{}, {adam: true}, {views: true}, {adam: true, views: true}, {fresh: true},
		{opts: ddp.Options{FindUnused: true}}, {views: true, opts: ddp.Options{FindUnused: true}},
		{opts: ddp.Options{StaticGraph: true}},
		{opts: ddp.Options{Hooks: ddp.Hooks{Float32: ddp.BFloat16()}}},
	} {
		if err := sameShards[float32](c, rank, ranks); err != nil {
			return err
		}
	}
	c := sharding{adam: true}
	return errors.Join(sameShards[float64](c, rank, ranks), sameShards[half.Float16](c, rank, ranks), sameShards[half.BFloat16](c, rank, ranks))
}

func sameShards[T ddp.Float](c sharding, rank, ranks int) error {
	want, err := trainShards[T](c, rank, ranks, true)
	if err != nil {
		return err
	}
	for _, c.shard = range []bool{false, true} {
		got, err := trainShards[T](c, rank, ranks, false)
		if err != nil {
			return fmt.Errorf("%+v: %w", c, err)
		}
		for i, x := range got {
			if math.Float64bits(x) != math.Float64bits(want[i]) {
				return fmt.Errorf("%+v of %T: element %d is %v, and without Step %v", c, *new(T), i, x, want[i])
			}
		}
	}
	return nil
}

// tree adds up in one order in all-reduce and reduce-scatter, ring in two.
func TestShardedByEntry(t *testing.T) {
	for entry, isSame := range map[string]bool{"direct": true, "tree": true, "ring": false} {
		for _, ranks := range []int{2, 3, 7} {
			err := dist.Spawn(func(_ context.Context, rank int) error {
				if err := dist.InitProcessGroup("ccl", dist.WithAlgorithm(entry)); err != nil {
					return err
				}
				c := sharding{views: true}
				var err error
				for _, f := range []func() error{
					func() error { return sameShards[float32](c, rank, ranks) },
					func() error { return sameShards[half.Float16](c, rank, ranks) },
					func() error { return sameShards[half.BFloat16](c, rank, ranks) },
				} {
					err = errors.Join(err, f())
				}
				if same := err == nil; same != isSame && ranks > 2 {
					return fmt.Errorf("%s, %d ranks: same bits: %v (%w)", entry, ranks, same, err)
				}
				return nil
			}, dist.WithRanks(ranks))
			require.NoError(t, err)
		}
	}
}

// trainFrom trains from a checkpoint, if there is one, to a step, saves, and returns the parameters. All ranks have the
// same gradients, so that all numbers of ranks train alike.
func trainFrom(path string, shard bool, until int) ([]float32, error) {
	w, b := make([]float32, 11), make([]float32, 4)
	r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, nil, 11, 1), ddp.Param("b", b, nil)}, ddp.Options{Shard: shard})
	if err != nil {
		return nil, err
	}
	momentum, err := ddp.NewOptimizerState[float64](r, "momentum")
	if err != nil {
		return nil, err
	}
	step := 0
	if _, err := os.Stat(path); err == nil {
		if err := r.Load(bg, path, &step); err != nil {
			return nil, err
		}
	}
	if err := dist.Barrier(); err != nil { // all have looked
		return nil, err
	}
	for ; step < until; step++ {
		for i := range 2 {
			g := ddp.Grad[float32](r, i)
			for j := range g {
				g[j] = float32(3 + step + i + j)
			}
			r.Ready(i)
		}
		if err := r.Wait(bg); err != nil {
			return nil, err
		}
		if err := ddp.Step(bg, r, func(p ddp.Part[float32]) {
			for i, g := range p.Gradient {
				m := momentum[p.Parameter]
				m[i] = 0.9*m[i] + float64(g)
				p.Values[i] -= 0.1 * float32(m[i])
			}
		}); err != nil {
			return nil, err
		}
	}
	return slices.Concat(w, b), errors.Join(r.Save(bg, path, step), r.Close())
}

// A checkpoint of parts is that of whole tensors, and any number of ranks goes on from it, with parts or without.
func TestShardedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	var want []float32
	all(t, 1, func(int) (err error) {
		want, err = trainFrom(filepath.Join(dir, "plain"), false, 6)
		return err
	})
	plain, err := os.ReadFile(filepath.Join(dir, "plain"))
	require.NoError(t, err)
	for _, ranks := range []int{1, 2, 3, 4, 7} {
		path := filepath.Join(dir, fmt.Sprint(ranks))
		for i, part := range []struct {
			ranks int
			shard bool
		}{{ranks, true}, {8 - ranks, true}, {ranks, false}} {
			all(t, part.ranks, func(rank int) error {
				got, err := trainFrom(path, part.shard, 2*(i+1))
				if err == nil && i == 2 && !slices.Equal(got, want) {
					return fmt.Errorf("got %v, want %v", got, want)
				}
				return err
			})
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, plain, got, "%d ranks", ranks)
	}
}

// With parts the norm is that of all gradients, and each rank scales its parts, if it has any.
func TestShardedClipGradNorm(t *testing.T) {
	for i, huge := range []float64{1, 1, 1e200, 1e200} {
		all(t, []int{3, 12}[i%2], func(rank int) error {
			r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float64, 7), nil), ddp.Param("b", make([]float64, 2), nil)},
				ddp.Options{Shard: true})
			if err != nil {
				return err
			}
			for i := range 2 {
				for j := range ddp.Grad[float64](r, i) {
					ddp.Grad[float64](r, i)[j] = 2 * huge
				}
				r.Ready(i)
			}
			if err := r.Wait(bg); err != nil {
				return err
			}
			norm, err := r.ClipGradNorm(3 * huge)
			if err != nil {
				return err
			}
			require.InEpsilon(t, 6*huge, norm, 1e-12)
			elements := []int{0}
			for _, p := range ddp.Parts[float64](r) {
				elements[0] += len(p.Values)
				for _, g := range p.Gradient {
					require.InEpsilon(t, huge, g, 1e-6)
				}
			}
			if err := dist.AllReduce(elements, dist.Sum); err != nil {
				return err
			}
			require.Equal(t, 9, elements[0], "all ranks have all parts")
			return r.Close()
		})
	}
}

// Step is refused where there are no means, or nothing of its type.
func TestStepMistakes(t *testing.T) {
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, 3), nil)}, ddp.Options{Shard: true})
		if err != nil {
			return err
		}
		invalid := func(err error, text string) {
			var e *ccl.InvalidArgumentError
			require.ErrorAs(t, err, &e)
			require.ErrorContains(t, err, text)
		}
		never := func(ddp.Part[float32]) { panic("update is called") }
		invalid(ddp.Step(bg, r, func(ddp.Part[float64]) {}), "no parameter is of float64")
		require.Empty(t, ddp.Parts[float64](r))
		invalid(r.NoSync(func() error { return ddp.Step(bg, r, never) }), "gradients that NoSync has accumulated")
		invalid(r.Join(bg, func() error { panic("train is called") }), "Join with Options.Shard")

		_, err = ddp.NewOptimizerState[float32](r, "m")
		require.NoError(t, err)
		_, err = ddp.NewOptimizerState[float64](r, "m")
		invalid(err, `there is a tensor "a.m" already`)

		r.Ready(0)
		invalid(ddp.Step(bg, r, never), "a step has begun by Ready")
		if err := errors.Join(r.Wait(bg), r.Close()); err != nil {
			return err
		}
		require.ErrorIs(t, ddp.Step(bg, r, never), ccl.ErrClosed)
		_, err = ddp.NewOptimizerState[float32](r, "n")
		require.ErrorIs(t, err, ccl.ErrClosed)
		require.Empty(t, ddp.Parts[float32](r))
		return nil
	})
}

// Ranks have the same options, Shard included.
func TestShardOnSomeRanks(t *testing.T) {
	for _, err := range spawn(t, 2, func(rank int) error {
		_, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, 3), nil)}, ddp.Options{Shard: rank == 1})
		return err
	}) {
		var m *ccl.MismatchError
		require.ErrorAs(t, err, &m)
		require.Equal(t, "Options.Shard", m.Field)
	}
}

// If update panics on one rank, also where the program recovers, the step fails on the others.
func TestUpdatePanics(t *testing.T) {
	errs := spawn(t, 3, func(rank int) (err error) {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, 30), nil), ddp.Param("b", make([]float32, 30), nil)},
			ddp.Options{Shard: true, FirstBucketBytes: 1, BucketBytes: 1})
		if err != nil {
			return err
		}
		r.Ready(0)
		r.Ready(1)
		if err := r.Wait(bg); err != nil {
			return err
		}
		if rank == 1 {
			defer func() { err = errors.Join(fmt.Errorf("recovered: %v", recover()), r.Close()) }()
		}
		return ddp.Step(bg, r, func(p ddp.Part[float32]) {
			if rank == 1 && p.Parameter == 0 {
				panic("update is wrong")
			}
		})
	})
	require.ErrorContains(t, errs[1], "recovered: update is wrong")
	for _, rank := range []int{0, 2} {
		var aborted *dist.AbortedError
		require.ErrorAs(t, errs[rank], &aborted)
		require.Equal(t, 1, aborted.By)
		require.ErrorContains(t, errs[rank], "update has not returned to Step")
		require.Regexp(t, `^ddp: bucket (0 \(b\)|1 \(a\)): all_gather `, errs[rank].Error())
	}
}
