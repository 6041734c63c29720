package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// Wait ends with its context also while Finish of a hook waits for a rank that has begun the step and
// not come to Wait.
func TestWaitEndsInFinish(t *testing.T) {
	t.Setenv("GOCCL_TIMEOUT", "10s")
	for name, opts := range map[string]ddp.Options{
		"shards":   {LogicalShards: 5}, // no whole subtrees
		"low rank": {Hooks: ddp.Hooks{Float32: ddp.PowerSGD(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, onRanks(t, 2, func(rank int) error {
				r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", make([]float32, 400), nil, 20, 20)}, opts)
				if err != nil {
					return err
				}
				for range r.Shards() {
					r.Ready(0)
				}
				if rank == 1 {
					if _, err := ccl.Recv(bg, world().Communicator(), []byte{0}, 0, 1); err != nil {
						return err
					}
					_, isAborted := errors.AsType[*dist.AbortedError](r.Wait(bg))
					return errors.Join(equal("aborted", isAborted, true), r.Close())
				}
				ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond) // whenever it ends, Wait does
				defer cancel()
				err = r.Wait(ctx)
				if !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("Wait returns %w", err)
				}
				return errors.Join(ccl.Send(bg, world().Communicator(), []byte{0}, 1, 1), r.Close())
			}))
		})
	}
}

// A group that is none is refused, and not asked for its algorithms.
func TestLogicalShardsOfNoGroup(t *testing.T) {
	require.NoError(t, onRanks(t, 1, func(int) error {
		for _, group := range []*dist.ProcessGroup{nil, {}} {
			_, err := ddp.New(bg, group, []ddp.Parameter{ddp.Param("w", make([]float32, 1), nil)}, ddp.Options{LogicalShards: 2})
			if err := isInvalid(err); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Buffers that begin with an infinity or NaN become the mean of what shards leave there.
func TestLogicalShardsInfiniteBuffers(t *testing.T) {
	for _, ranks := range []int{1, 2, 3} {
		require.NoError(t, onRanks(t, ranks, func(int) error {
			inf := math.Inf(1)
			least := []float32{float32(inf), float32(inf), float32(inf), 1, float32(-inf)}
			r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", make([]float32, 1), nil)}, ddp.Options{LogicalShards: 7, Buffers: []ddp.Tensor{ddp.Buffer("least", least)}})
			if err != nil {
				return err
			}
			for shard := range r.Shards() {
				least[0] = float32(shard)
				if shard == 3 {
					least[1], least[3] = 5, float32(inf)
				}
				r.Ready(0)
			}
			return errors.Join(r.Wait(bg), equal("buffer", fmt.Sprint(least), "[3 +Inf +Inf +Inf -Inf]"), r.Close())
		}))
	}
}

// A group within the group of all ranks has shards and a tree of its own, beside those of all ranks.
func TestLogicalShardsOfGroups(t *testing.T) {
	require.NoError(t, onRanks(t, 4, func(rank int) error {
		var all []ddp.Parameter
		var values [][]float32
		reducers := []*ddp.Reducer{}
		for i, members := range [][]int{{0, 1, 2, 3}, {1, 3, 2}} {
			group, err := dist.NewGroup(members)
			if err != nil {
				return err
			}
			if i == 1 && rank == 0 {
				continue
			}
			values = append(values, make([]float32, 5))
			all = append(all, ddp.Param("w", values[i], nil))
			r, err := ddp.New(bg, group, all[i:], ddp.Options{LogicalShards: 6})
			if err != nil {
				return err
			}
			reducers = append(reducers, r)
		}
		for step := range 3 {
			var want [][]float32
			for shard := range 6 {
				want = append(want, []float32{float32(step*7+shard) / 3})
			}
			for _, r := range reducers {
				for shard := range r.Shards() {
					for i := range ddp.Grad[float32](r, 0) {
						ddp.Grad[float32](r, 0)[i] = want[shard][0]
					}
					r.Ready(0)
				}
			}
			for _, r := range reducers {
				if err := r.Wait(bg); err != nil {
					return err
				}
				column := []float32{want[0][0], want[1][0], want[2][0], want[3][0], want[4][0], want[5][0]}
				if err := equal("mean", ddp.Grad[float32](r, 0)[4], shardMean(column)); err != nil {
					return err
				}
			}
		}
		for _, r := range reducers {
			if err := r.Close(); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Between the shards of a step a rank cannot do what belongs between steps; it can end.
func TestLogicalShardsBetween(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	require.NoError(t, onRanks(t, 1, func(rank int) error {
		r, err := newOfTwo(4)
		if err != nil {
			return err
		}
		for range r.Shards() {
			_, clip := r.ClipGradNorm(1)
			_, mean := ddp.MeanOverShards(bg, r, []float64{1})
			_, async := r.SaveAsync(bg, path, nil)
			for _, err := range []error{
				r.Save(bg, path, nil), r.Load(bg, path, nil), r.Verify(bg), clip, mean, async,
				r.AverageParameters(bg), r.Join(bg, func() error { return nil }), r.NoSync(func() error { return nil }),
			} {
				if err := isInvalid(err); err != nil {
					return err
				}
			}
			if err := contains(r.Verify(bg), "a step has begun by Shards: call Wait first"); err != nil {
				return err
			}
			r.Ready(0)
			r.Ready(1)
		}
		if err := r.Wait(bg); err != nil {
			return err
		}

		shards := 0
		for range r.Shards() {
			shards++
			if err := r.Close(); err != nil {
				return err
			}
		}
		for _, err := range []error{r.Wait(bg), r.AverageParameters(bg), r.NoSync(nil), func() error { _, err := ddp.NewOuter(r, 1, 0); return err }()} {
			if !errors.Is(err, ccl.ErrClosed) {
				return fmt.Errorf("after Close got %w", err)
			}
		}
		return equal("shards", shards, 1)
	}))
}

// A loop whose body panics leaves a step that fails on all ranks, and Wait within a loop says which shards it lacks.
func TestLogicalShardsLeft(t *testing.T) {
	for name, leave := range map[string]func(r *ddp.Reducer) error{
		"panic": func(r *ddp.Reducer) (err error) {
			defer func() {
				if recover() != nil {
					err = r.Wait(bg)
				}
			}()
			for range r.Shards() {
				r.Ready(0)
				panic("in the loop")
			}
			return nil
		},
		"wait": func(r *ddp.Reducer) (err error) {
			for range r.Shards() {
				r.Ready(0)
				r.Ready(1)
				if err = r.Wait(bg); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		require.NoError(t, onRanks(t, 3, func(rank int) error {
			r, err := newOfTwo(7) // rank 1 has 3 and 4
			if err != nil {
				return err
			}
			if rank == 1 {
				e, isUnready := errors.AsType[*ddp.UnreadyError](leave(r))
				if err := equal(name, isUnready && (e.Shard == 3 && len(e.Parameters) == 1 || e.Shard == 4 && len(e.Parameters) == 2), true); err != nil {
					return err
				}
				return r.Close()
			}
			readyShards(r)
			_, isRejected := errors.AsType[*ccl.MismatchError](r.Wait(bg))
			return errors.Join(equal("rejected", isRejected, true), r.Close())
		}))
	}
}

// No values have no mean, on all ranks.
func TestMeanOverShardsOfNothing(t *testing.T) {
	require.NoError(t, onRanks(t, 2, func(rank int) error {
		r, err := newOfTwo(3)
		if err != nil {
			return err
		}
		mean, err := ddp.MeanOverShards(bg, r, []float64{})
		return errors.Join(err, equal("values", len(mean), 0), r.Close())
	}))
}

// A checkpoint that is written beside later steps has the weights of its step, for another number of ranks.
func TestLogicalShardsSaveAsync(t *testing.T) {
	dir := t.TempDir()
	lengths := []int{3, 700, 0, 9}
	const shards = 8
	require.NoError(t, onRanks(t, 3, func(rank int) error {
		var params []ddp.Parameter
		var values [][]float32
		for i, n := range lengths {
			values = append(values, make([]float32, n))
			params = append(params, ddp.Param(fmt.Sprint("p", i), values[i], nil))
		}
		gradientsOf(values, rank, 1000)
		r, err := ddp.New(bg, world(), params, ddp.Options{LogicalShards: shards})
		if err != nil {
			return err
		}
		var saving *ddp.SaveWork
		for step := range 4 {
			for shard := range r.Shards() {
				var grads [][]float32
				for i := range values {
					grads = append(grads, ddp.Grad[float32](r, i))
				}
				gradientsOf(grads, shard, step)
				for i := range grads {
					r.Ready(i)
				}
			}
			if err := r.Wait(bg); err != nil {
				return err
			}
			for p, v := range values {
				for i, g := range ddp.Grad[float32](r, p) {
					v[i] = float32(float64(v[i]) - 0.1*float64(g))
				}
			}
			if step == 1 {
				if saving, err = r.SaveAsync(bg, filepath.Join(dir, "w.safetensors"), nil); err != nil {
					return err
				}
			}
		}
		return errors.Join(saving.Wait(bg), r.Close())
	}))
	c := logicalTraining{lengths: lengths, kind: "own", shards: shards, from: 2, until: 5, path: filepath.Join(dir, "w.safetensors")}
	require.NoError(t, onRanks(t, 5, func(rank int) error {
		got, err := trainLogical[float32](c, rank)
		require.Equal(t, expected[float32](lengths, shards, 5), got)
		return err
	}))
}

// Odd arguments are refused, or mean nothing.
func TestShardsOfOddLoader(t *testing.T) {
	load := func(_ context.Context, indices []int) ([]int, error) { return indices, nil }
	l := ddp.Loader[[]int]{Sampler: ddp.Sampler{Samples: 20, Ranks: 2, Shards: 4}, Batch: 2, Load: load}
	for range l.Epoch(bg, 0, math.MaxInt) {
		t.Fatal("there is a batch after the end")
	}
	require.ErrorContains(t, ddp.Sampler{Samples: 1, Ranks: 1, Shards: 1 << 40}.Check(), "at most 1048576 are possible")
	require.ErrorContains(t, ddp.Sampler{Samples: 1, Ranks: 1, Shards: -1}.Check(), "Shards is -1")
}
