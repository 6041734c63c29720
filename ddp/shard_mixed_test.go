package ddp_test

import (
	"bytes"
	"errors"
	"fmt"
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

func init() { works["mixed shards"] = mixedShards }

// A model of all types whose optimizer is divided among ranks is trained, with accumulation, clipping, Verify and
// checkpoints, as one whose optimizer is not: norms and weights have the same bits, and files the same bytes. Each goes on
// from a checkpoint of the other.
func TestMixedShards(t *testing.T) { everywhere(t, "mixed shards", 1, succeeded) }

func mixedShards(rank, _ int, _ *outcome) (err error) {
	var dir string
	if rank == 0 {
		if dir, err = os.MkdirTemp("", "ddp-*"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if err := dist.BroadcastObject(&dir, 0); err != nil {
		return err
	}
	for _, views := range []bool{false, true} {
		var want []float64
		var file []byte
		for _, shards := range [][2]bool{{false, false}, {true, false}, {false, true}} {
			path := filepath.Join(dir, fmt.Sprint(views, shards))
			var got []float64
			for phase, shard := range shards {
				if got, err = trainMixedShards(path, rank, phase, views, shard); err != nil {
					return fmt.Errorf("views %v, shards %v, phase %d: %w", views, shards, phase, err)
				}
			}
			written, err := os.ReadFile(path)
			if want == nil {
				want, file = got, written
			}
			if err != nil || !slices.Equal(got, want) || !bytes.Equal(written, file) {
				return fmt.Errorf("views %v, shards %v: the norms and weights %v begin, want %v; the same file: %v (%w)",
					views, shards, got[:20], want[:20], bytes.Equal(written, file), err)
			}
		}
	}
	return dist.Barrier() // rank 0 removes the files
}

// trainMixedShards makes two steps of a mixed model, in a later phase from the checkpoint of the one before, and saves.
// It returns the norms and the weights.
func trainMixedShards(path string, rank, phase int, views, shard bool) (got []float64, err error) {
	lengths := []int{5, 3, 1, 0, 7, 70_000, 2}
	if views { // nothing is reduced in place
		lengths[5] = 70
	}
	var model []variable
	var params []ddp.Parameter
	for i, d := range mixedTypesOf {
		values := make([]float64, lengths[i])
		for j := range values {
			values[j] = float64((i+j+rank)%5) / 4 // rank 0's count
		}
		model = append(model, newVariable(d, values))
		params = append(params, model[i].parameter(fmt.Sprint(i), views))
	}
	r, err := ddp.New(bg, world(), params, ddp.Options{Shard: shard, FirstBucketBytes: 16, BucketBytes: 16})
	if err != nil {
		return nil, err
	}
	momentum, err := ddp.NewOptimizerState[float64](r, "momentum")
	if err != nil {
		return nil, err
	}
	step := 0
	if phase > 0 {
		if err := r.Load(bg, path, &step); err != nil {
			return nil, err
		}
	}
	for end := step + 2; step < end; step++ {
		norm, err := stepMixedShards(r, model, momentum, step)
		if err != nil {
			return nil, err
		}
		got = append(got, norm)
	}
	if err := errors.Join(r.Verify(bg), r.Save(bg, path, step)); err != nil {
		return nil, err
	}
	for _, v := range model {
		got = append(got, v.values()...)
	}
	return got, r.Close()
}

// stepMixedShards makes a step of two batches, the same on all ranks, of whole numbers, so that the squares of their norm
// are exact in any order.
func stepMixedShards(r *ddp.Reducer, model []variable, momentum [][]float64, step int) (norm float64, err error) {
	backward := func(batches int) {
		for i, v := range model {
			g := make([]float64, len(v.values()))
			for j := range g {
				g[j] = float64(batches * ((3*i+j+step)%7 - 3))
			}
			v.setGradient(r, i, g)
			r.Ready(i)
		}
	}
	if err := r.NoSync(func() error { backward(1); return r.Wait(bg) }); err != nil {
		return 0, err
	}
	backward(2)
	if err := r.Wait(bg); err != nil {
		return 0, err
	}
	if norm, err = r.ClipGradNorm(64); err != nil {
		return 0, err
	}
	return norm, errors.Join(descendShards[float32](r, momentum), descendShards[half.BFloat16](r, momentum),
		descendShards[float64](r, momentum), descendShards[half.Float16](r, momentum))
}

// descendShards is SGD with momentum for the parameters of a type.
func descendShards[T ddp.Float](r *ddp.Reducer, momentum [][]float64) error {
	return ddp.Step(bg, r, func(p ddp.Part[T]) {
		values := floats(p.Values)
		for i, g := range floats(p.Gradient) {
			m := &momentum[p.Parameter][i]
			*m = *m/2 + g
			values[i] -= *m / 8
		}
		setFloats(p.Values, values)
	})
}

// What one tensor of a file has can become the state of several parameters, of which a rank has different parts.
func TestShardedStateOfOneTensor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	model := func(shard bool) (*ddp.Reducer, [][]float32, error) {
		r, err := ddp.New(bg, world(), []ddp.Parameter{
			ddp.Param("a", make([]float32, 7), nil), ddp.Param("b", make([]float32, 7), nil),
		}, ddp.Options{Shard: shard})
		if err != nil {
			return nil, nil, err
		}
		m, err := ddp.NewOptimizerState[float32](r, "m")
		return r, m, err
	}
	all(t, 1, func(int) error {
		r, m, err := model(false)
		if err != nil {
			return err
		}
		for i := range m[0] {
			m[0][i] = float32(1 + i)
		}
		return errors.Join(r.Save(bg, path, nil), r.Close())
	})
	all(t, 3, func(int) error {
		r, m, err := model(true)
		if err != nil {
			return err
		}
		opts := ddp.LoadOptions{AllowUnexpected: true, Names: map[string]string{"b.m": "a.m"}}
		unmatched, err := r.LoadWith(bg, path, nil, opts)
		if err != nil {
			return err
		}
		for _, p := range ddp.Parts[float32](r) {
			for i, x := range m[p.Parameter] {
				if x != float32(1+p.First+i) {
					return fmt.Errorf("parameter %d: the state from %d on is %v", p.Parameter, p.First, m[p.Parameter])
				}
			}
		}
		return errors.Join(equal("unmatched", fmt.Sprint(unmatched), "{[] [b.m]}"), r.Close())
	})
}

// The means of a step are gone after Step, in whose memory parameters have travelled, until the next Wait.
func TestSpentMeans(t *testing.T) {
	for _, shard := range []bool{false, true} {
		all(t, 2, func(int) error {
			r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, 3), nil), ddp.Param("b", make([]float64, 3), nil)},
				ddp.Options{Shard: shard})
			if err != nil {
				return err
			}
			for range 2 {
				r.Ready(0)
				r.Ready(1)
				if err := r.Wait(bg); err != nil {
					return err
				}
				if err := ddp.Step(bg, r, func(ddp.Part[float32]) {}); err != nil {
					return err
				}
				var refused *ccl.InvalidArgumentError
				_, err := r.ClipGradNorm(1)
				require.Equal(t, shard, errors.As(err, &refused), "%v", err)
				err = ddp.Step(bg, r, func(ddp.Part[float32]) { require.False(t, shard) })
				require.Equal(t, shard, errors.As(err, &refused), "%v", err)
				if err := ddp.Step(bg, r, func(ddp.Part[float64]) {}); err != nil { // its means are there
					return err
				}
			}
			return r.Close()
		})
	}
}

// A limit that is wrong on one rank is an error on all, if the norm takes a call.
func TestShardedClipGradNormMistake(t *testing.T) {
	for rank, err := range spawn(t, 3, func(rank int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, 7), nil)}, ddp.Options{Shard: true})
		if err != nil {
			return err
		}
		_, err = r.ClipGradNorm([]float64{1, -1, 1}[rank])
		return errors.Join(err, dist.Barrier()) // no rank ends before the others know
	}) {
		require.ErrorContains(t, err, "the limit is -1, and must be at least 0")
		if _, ok := errors.AsType[*ccl.MismatchError](err); rank != 1 && !ok {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// With Shard ranks clip to the same limit.
func TestShardedClipGradNormLimits(t *testing.T) {
	for rank, err := range spawn(t, 2, func(rank int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, 7), nil)}, ddp.Options{Shard: true})
		if err != nil {
			return err
		}
		_, err = r.ClipGradNorm(1 + float64(rank)/2)
		return err
	}) {
		var m *ccl.MismatchError
		require.ErrorAs(t, err, &m, "rank %d", rank)
		require.ErrorContains(t, err, "limit 1.5", "rank %d", rank)
	}
}

// A group that ends within update ends Step on all ranks, and memory stays until then.
func TestEndsWithinStep(t *testing.T) {
	for rank, err := range spawn(t, 3, func(rank int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, 7), nil), ddp.Param("b", make([]float32, 7), nil)},
			ddp.Options{Shard: true, FirstBucketBytes: 1, BucketBytes: 1})
		if err != nil {
			return err
		}
		r.Ready(0)
		r.Ready(1)
		if err := r.Wait(bg); err != nil {
			return err
		}
		return ddp.Step(bg, r, func(p ddp.Part[float32]) {
			if rank == 1 && p.Parameter == 0 {
				_ = dist.DestroyProcessGroup()
			}
			for i := range p.Gradient {
				p.Values[i] -= p.Gradient[i]
			}
		})
	}) {
		require.Error(t, err, "rank %d", rank)
		if rank == 1 {
			require.ErrorIs(t, err, ccl.ErrClosed)
		}
	}
}
