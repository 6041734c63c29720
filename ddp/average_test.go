package ddp_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
)

func init() {
	works["average"] = averageParameters
	works["outer"] = outerSteps
}

// AverageParameters makes parameters of all types the mean, with hooks as well.
func TestAverageParameters(t *testing.T) { everywhere(t, "average", 1, succeeded) }

func averageParameters(rank, ranks int, _ *outcome) error {
	a, b := make([]float32, 3), make([]float64, 2)
	r, err := ddp.New(bg, world(), []ddp.Parameter{
		ddp.Param("a", a, nil), ddp.Param("none", []float32{}, nil), ddp.Param("b", b, nil),
	}, ddp.Options{Hooks: ddp.Hooks{Float32: ddp.PowerSGD(1)}})
	if err != nil {
		return err
	}
	for range 2 {
		for i := range a {
			a[i] = float32(rank + i)
		}
		b[1] = float64(2 * rank)
		if err := r.AverageParameters(bg); err != nil {
			return err
		}
		mean := float64(ranks-1) / 2
		if !slices.Equal(a, []float32{float32(mean), float32(mean) + 1, float32(mean) + 2}) || b[1] != 2*mean {
			return fmt.Errorf("the means are %v and %v", a, b)
		}
	}
	r.Ready(0)
	var invalid *ccl.InvalidArgumentError
	if err := r.AverageParameters(bg); !errors.As(err, &invalid) {
		return fmt.Errorf("within a step: %w", err)
	}
	r.Ready(1)
	r.Ready(2)
	return errors.Join(r.Wait(bg), r.Close())
}

// moved is by how much a rank moves an element between two outer steps.
func moved(rank, i, round int) float64 { return math.Sin(float64(1 + 3*rank + 7*i + 11*round)) }

// Outer steps are those of SGD with Nesterov momentum, with the same bits if ranks have parts of the momentum.
func TestOuter(t *testing.T) {
	everywhere(t, "outer", 1, func(t *testing.T, all []outcome) {
		succeeded(t, all)
		for rank, o := range all {
			require.Equal(t, all[0].Values, o.Values, "rank %d", rank)
		}
	})
}

func outerSteps(rank, ranks int, o *outcome) error {
	const count, rounds = 9, 4
	for _, c := range []struct{ rate, momentum float64 }{{0.7, 0.9}, {1, 0}} {
		want, velocity := make([]float64, count), make([]float64, count)
		for round := range rounds {
			for i := range want {
				g := 0.0
				for other := range ranks {
					g -= moved(other, i, round) / float64(ranks)
				}
				velocity[i] = c.momentum*velocity[i] + g
				want[i] -= c.rate * (g + c.momentum*velocity[i])
			}
		}
		var first []float64
		for _, opts := range []ddp.Options{{}, {Shard: true}, {StaticGraph: true}} {
			got, err := moveOuter(rank, count, rounds, c.rate, c.momentum, opts)
			if err != nil {
				return err
			}
			for i, x := range got {
				if math.Abs(x-want[i]) > 1e-12 {
					return fmt.Errorf("%+v: element %d is %v, want %v", opts, i, x, want[i])
				}
			}
			if first == nil {
				first = got
			}
			if !slices.Equal(got, first) {
				return fmt.Errorf("%+v: got %v, want %v", opts, got, first)
			}
			o.Values = append(o.Values, got...)
		}
	}
	return nil
}

// moveOuter makes outer steps of a model in two parameters, and returns its parameters.
func moveOuter(rank, count, rounds int, rate, momentum float64, opts ddp.Options) ([]float64, error) {
	all := make([]float64, count)
	r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", all[:2], nil), ddp.Param("b", all[2:], nil)}, opts)
	if err != nil {
		return nil, err
	}
	outer, err := ddp.NewOuter(r, rate, momentum)
	if err != nil {
		return nil, err
	}
	for round := range rounds {
		for i := range all {
			all[i] += moved(rank, i, round)
		}
		if err := outer.Step(bg); err != nil {
			return nil, err
		}
	}
	return all, errors.Join(r.Verify(bg), r.Close())
}

// A loop with outer steps goes on from a checkpoint of another number of ranks as if it had not ended.
func TestOuterCheckpoint(t *testing.T) {
	run := func(path string, ranks, from, to int, shard bool) (values []float32) {
		all(t, ranks, func(rank int) error {
			w := make([]float32, 7)
			r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, nil)}, ddp.Options{Shard: shard})
			if err != nil {
				return err
			}
			outer, err := ddp.NewOuter(r, 0.5, 0.5)
			if err != nil {
				return err
			}
			if from > 0 {
				if err := r.Load(bg, path, nil); err != nil {
					return err
				}
			}
			for round := from; round < to; round++ {
				for i := range w {
					w[i] += float32(1 + i + round) // the same on all ranks, so that means are exact
				}
				if err := outer.Step(bg); err != nil {
					return err
				}
			}
			if rank == 0 {
				values = w
			}
			return errors.Join(r.Save(bg, path, nil), r.Close())
		})
		return values
	}
	want := run(filepath.Join(t.TempDir(), "whole"), 2, 0, 4, false)
	path := filepath.Join(t.TempDir(), "parts")
	run(path, 3, 0, 2, true)
	run(path, 4, 2, 3, true)
	require.Equal(t, want, run(path, 1, 3, 4, false))
}

// An outer step has a rate and a momentum, and a Reducer has one.
func TestOuterMistakes(t *testing.T) {
	all(t, 2, func(int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, 3), nil)}, ddp.Options{})
		if err != nil {
			return err
		}
		var invalid *ccl.InvalidArgumentError
		for _, c := range [][2]float64{{-1, 0}, {0, -1}, {math.NaN(), 0}, {1, math.Inf(1)}} {
			_, err = ddp.NewOuter(r, c[0], c[1])
			require.ErrorAs(t, err, &invalid)
		}
		outer, err := ddp.NewOuter(r, 1, 0)
		require.NoError(t, err)
		_, err = ddp.NewOuter(r, 1, 0)
		require.ErrorAs(t, err, &invalid)
		r.Ready(0)
		require.ErrorAs(t, outer.Step(bg), &invalid)
		if err := errors.Join(r.Wait(bg), r.Close()); err != nil {
			return err
		}
		require.ErrorIs(t, outer.Step(bg), ccl.ErrClosed)
		return nil
	})
}

// Outer steps within Join are over the ranks that train; one after it begins with the parameters that all ranks have got.
func TestOuterWithinJoin(t *testing.T) {
	all(t, 3, func(rank int) error {
		w, g := []float64{1, 2}, make([]float64, 2)
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, g)}, ddp.Options{})
		if err != nil {
			return err
		}
		outer, err := ddp.NewOuter(r, 1, 0)
		if err != nil {
			return err
		}
		err = r.Join(bg, func() error {
			for range 1 + rank {
				w[0]++
				if err := outer.Step(bg); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		w[1] += float64(rank)
		return errors.Join(outer.Step(bg), equal("w", fmt.Sprint(w), "[4 3]"), r.Verify(bg), r.Close())
	})
}

// With StaticGraph a parameter that a rank does not train counts as not moved there, and one that no rank trains stays.
func TestOuterOfStaticGraph(t *testing.T) {
	for _, views := range []bool{false, true} {
		all(t, 2, func(rank int) error {
			r, g, err := three(ddp.Options{StaticGraph: true}, views)
			if err != nil {
				return err
			}
			outer, err := ddp.NewOuter(r, 1, 0)
			if err != nil {
				return err
			}
			for range 2 {
				for i := range 1 + rank { // parameter 1 on rank 1 alone, and 2 nowhere
					g[i][0] = 0
					r.Ready(i)
				}
				if err := r.Wait(bg); err != nil {
					return err
				}
			}
			for i := range 3 {
				ddp.Parts[float64](r)[i].Values[0] += float64(2 * (i + rank))
			}
			if err := errors.Join(outer.Step(bg), r.Verify(bg)); err != nil {
				return err
			}
			var values []float64
			for _, p := range ddp.Parts[float64](r) {
				values = append(values, p.Values[0])
			}
			return errors.Join(equal("values", fmt.Sprint(values), "[1 2 0]"), r.Close())
		})
	}
}

// An outer step is one of all ranks, by the same rate and momentum: another call, or another rate, is a mismatch before
// a parameter has changed.
func TestOuterOnSomeRanks(t *testing.T) {
	for _, shard := range []bool{false, true} {
		for name, makeCall := range map[string]func(rank int, r *ddp.Reducer, outers []*ddp.Outer) error{
			"rates": func(rank int, _ *ddp.Reducer, outers []*ddp.Outer) error { return outers[rank].Step(bg) },
			"a step": func(rank int, r *ddp.Reducer, outers []*ddp.Outer) error {
				if rank == 0 {
					return outers[0].Step(bg)
				}
				r.Ready(0)
				return r.Wait(bg)
			},
		} {
			for rank, err := range spawn(t, 2, func(rank int) error {
				w := []float32{1, 2, 3}
				r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, nil)}, ddp.Options{Shard: shard})
				if err != nil {
					return err
				}
				outer, err := ddp.NewOuter(r, 0.5+float64(rank)/2, 0.5)
				if err != nil {
					return err
				}
				w[1] += 4
				err = makeCall(rank, r, []*ddp.Outer{outer, outer})
				require.Equal(t, []float32{1, 6, 3}, w, "%s, shard %v", name, shard)
				return err
			}) {
				var m *ccl.MismatchError
				require.ErrorAs(t, err, &m, "%s, shard %v, rank %d", name, shard, rank)
			}
		}
	}
}
