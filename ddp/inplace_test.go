package ddp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
)

// Long gradients of the program's own are buckets of their own, which are reduced in place, beside short ones that are
// copied. Hooks get buckets as without them, and a long gradient that no rank uses keeps its value.
func TestLongGradients(t *testing.T) {
	lengths := []int{10, 70_000, 3, 65_536, 20} // of float32: two have 256 KiB
	for name, c := range map[string]struct {
		options ddp.Options
		buckets int
	}{
		"in place": {ddp.Options{}, 3},
		"hook":     {ddp.Options{Hooks: ddp.Hooks{Float32: ddp.Float16()}}, 1},
		"unused":   {ddp.Options{FindUnused: true}, 1},
		"static":   {ddp.Options{StaticGraph: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.FirstBucketBytes, c.options.BucketBytes = 1<<20, 1<<20
			all(t, 3, func(rank int) error {
				var params []ddp.Parameter
				for i, n := range lengths {
					params = append(params, ddp.Param(string(rune('a'+i)), make([]float32, n), make([]float32, n)))
				}
				r, err := ddp.New(bg, world(), params, c.options)
				if err != nil {
					return err
				}
				for step := range 4 { // the second has other buckets
					unused := -1
					if name == "unused" {
						unused = 1
					}
					for i := len(params) - 1; i >= 0; i-- {
						grad := ddp.Grad[float32](r, i)
						for j := range grad {
							grad[j] = float32(3 * (rank + i + j%7 + step))
						}
						if i != unused {
							r.Ready(i)
						}
					}
					if err := r.Wait(bg); err != nil {
						return err
					}
					for i := range params {
						of := 1 // the mean of the ranks
						if i == unused {
							of = rank
						}
						for j, x := range ddp.Grad[float32](r, i) {
							if want := float32(3 * (of + i + j%7 + step)); x != want {
								require.Equal(t, want, x, "rank %d, step %d, parameter %d, element %d", rank, step, i, j)
							}
						}
					}
				}
				require.Equal(t, c.buckets, r.Stats().Buckets)
				return r.Close()
			})
		})
	}
}

// A rank that has ended takes part in place as well.
func TestLongGradientsInJoin(t *testing.T) {
	all(t, 2, func(rank int) error {
		grad := make([]float32, 70_000)
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, len(grad)), grad)}, ddp.Options{})
		if err != nil {
			return err
		}
		err = r.Join(bg, func() error {
			for step := range 2 + rank {
				for j := range grad {
					grad[j] = float32(2*rank + step)
				}
				r.Ready(0)
				if err := r.Wait(bg); err != nil {
					return err
				}
				want := float32(1 + step)
				if step == 2 { // rank 1 is alone
					want = 4
				}
				require.Equal(t, []float32{want, want}, []float32{grad[0], grad[len(grad)-1]})
			}
			return nil
		})
		require.NoError(t, err)
		return r.Close()
	})
}

// Within NoSync nothing is reduced: what the program has accumulated since is.
func TestLongGradientsInNoSync(t *testing.T) {
	all(t, 2, func(rank int) error {
		grad := make([]float64, 40_000)
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float64, len(grad)), grad)}, ddp.Options{})
		if err != nil {
			return err
		}
		backward := func() {
			for i := range grad {
				grad[i] += float64(i%5 + rank)
			}
			r.Ready(0)
		}
		if err := r.NoSync(func() error { backward(); return r.Wait(bg) }); err != nil {
			return err
		}
		backward()
		if err := r.Wait(bg); err != nil {
			return err
		}
		for i, is := range grad {
			require.Equal(t, 2*float64(i%5)+1, is, "rank %d, element %d", rank, i)
		}
		return r.Close()
	})
}

// Close ends a step that has begun: nothing writes to the program's gradient afterwards.
func TestCloseWithinStep(t *testing.T) {
	grads := [2][]float32{make([]float32, 8<<20), make([]float32, 8<<20)}
	all(t, 2, func(rank int) error {
		grad := grads[rank]
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, len(grad)), grad)}, ddp.Options{})
		if err != nil {
			return err
		}
		r.Ready(0)
		if err := r.Close(); err != nil {
			return err
		}
		for i := range grad {
			grad[i] = 7
		}
		return nil
	})
	for rank, grad := range grads {
		for i, is := range grad {
			if is != 7 {
				require.Equal(t, float32(7), is, "rank %d, element %d", rank, i)
			}
		}
	}
}

// A parameter that is used twice is passed once: a gradient is the mean once.
func TestSharedGradient(t *testing.T) {
	all(t, 2, func(int) error {
		grad := make([]float32, 3)
		_, err := ddp.New(bg, world(), []ddp.Parameter{
			ddp.Param("in", make([]float32, 3), grad),
			ddp.Param("out", make([]float32, 3), grad),
		}, ddp.Options{})
		var invalid *ccl.InvalidArgumentError
		require.ErrorAs(t, err, &invalid)
		require.ErrorContains(t, err, `the gradient of "in" and the gradient of "out" overlap: give each memory of its own, and pass a parameter with two uses once`)
		return nil
	})
}
