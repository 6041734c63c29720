package ddp_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
)

func init() { works["low rank"] = lowRank }

// PowerSGD gives the mean where that has a low rank, leaves vectors as they are, and gives all ranks the same bits.
// What it leaves out of a gradient of a high rank arrives later.
func TestPowerSGD(t *testing.T) {
	everywhere(t, "low rank", 1, func(t *testing.T, all []outcome) {
		succeeded(t, all)
		for rank, o := range all {
			require.Equal(t, all[0].Values, o.Values, "rank %d", rank)
		}
	})
}

const lowRows, lowColumns = 12, 20

// products returns a matrix that is the sum of products of some vectors, the same for all ranks but for the factors.
func products(rank, terms int) []float32 {
	shared, here := rand.New(rand.NewPCG(3, 3)), rand.New(rand.NewPCG(4, uint64(rank)))
	m := make([]float32, lowRows*lowColumns)
	for range terms {
		factor := here.Float64() + 0.5
		var u [lowRows]float64
		var v [lowColumns]float64
		for i := range u {
			u[i] = shared.NormFloat64()
		}
		for j := range v {
			v[j] = shared.NormFloat64()
		}
		for i := range m {
			m[i] += float32(factor * u[i/lowColumns] * v[i%lowColumns])
		}
	}
	return m
}

func lowRank(rank, ranks int, o *outcome) error {
	for _, views := range []bool{false, true} {
		if err := errors.Join(reduceLowRank(rank, ranks, views, o), feedBack(rank, ranks, views, o)); err != nil {
			return err
		}
	}
	return nil
}

// newLowRank makes a Reducer of a matrix and a vector.
func newLowRank(views bool, opts ddp.Options) (r *ddp.Reducer, err error) {
	matrix, vector := make([]float32, lowRows*lowColumns), make([]float32, 3)
	if views {
		matrix, vector = nil, nil
	}
	opts.Hooks = ddp.Hooks{Float32: ddp.PowerSGD(2)}
	return ddp.New(bg, world(), []ddp.Parameter{
		ddp.Param("matrix", make([]float32, lowRows*lowColumns), matrix, lowRows, lowColumns/2, 2),
		ddp.Param("vector", make([]float32, 3), vector),
	}, opts)
}

// meanBy makes a step and returns the mean of the matrix.
func meanBy(r *ddp.Reducer, matrix []float32, vector float32) ([]float32, error) {
	copy(ddp.Grad[float32](r, 0), matrix)
	for i := range ddp.Grad[float32](r, 1) {
		ddp.Grad[float32](r, 1)[i] = vector
	}
	r.Ready(1)
	r.Ready(0)
	err := r.Wait(bg)
	return ddp.Grad[float32](r, 0), err
}

// distance returns how far two vectors are apart, as a share of the length of the second.
func distance(a, b []float64) float64 {
	apart, length := 0.0, 0.0
	for i := range a {
		apart += (a[i] - b[i]) * (a[i] - b[i])
		length += b[i] * b[i]
	}
	return math.Sqrt(apart / length)
}

// meanOf returns the mean of the matrices of ranks.
func meanOf(ranks, terms int) []float64 {
	mean := make([]float64, lowRows*lowColumns)
	for other := range ranks {
		for i, x := range products(other, terms) {
			mean[i] += float64(x) / float64(ranks)
		}
	}
	return mean
}

func doubles(from []float32) (to []float64) {
	for _, x := range from {
		to = append(to, float64(x))
	}
	return to
}

func reduceLowRank(rank, ranks int, views bool, o *outcome) error {
	r, err := newLowRank(views, ddp.Options{})
	if err != nil {
		return err
	}
	want := meanOf(ranks, 2)
	for step := range 4 {
		matrix := products(rank, 2)
		switch step {
		case 1:
			clear(matrix) // and the direction of the last step is not lost
		case 2:
			matrix[5] = float32(math.NaN())
		}
		got, err := meanBy(r, matrix, float32(rank))
		if err != nil {
			return err
		}
		if d := distance(doubles(got), want); step%3 == 0 && !(d < 1e-5) {
			return fmt.Errorf("step %d: the mean is %v apart", step, d)
		} else if step == 2 && d == d {
			return errors.New("a NaN has disappeared")
		}
		if v := ddp.Grad[float32](r, 1)[2]; v != float32(ranks-1)/2 {
			return fmt.Errorf("the mean of the vector is %v", v)
		}
		if step != 2 {
			o.Values = append(o.Values, doubles(got)...)
		}
	}
	return r.Close()
}

func feedBack(rank, ranks int, views bool, o *outcome) error {
	r, err := newLowRank(views, ddp.Options{})
	if err != nil {
		return err
	}
	want, sum := meanOf(ranks, 8), make([]float64, lowRows*lowColumns)
	matrix := products(rank, 8)
	const steps = 100
	for step := range steps {
		got, err := meanBy(r, matrix, 0)
		if err != nil {
			return err
		}
		if d := distance(doubles(got), want); step == 0 && d < 0.2 {
			return fmt.Errorf("the first step is %v apart: nothing is left out", d)
		}
		for i, x := range doubles(got) {
			sum[i] += x / steps
		}
	}
	if d := distance(sum, want); d > 0.05 {
		return fmt.Errorf("the mean of %d steps is %v apart", steps, d)
	}
	o.Values = append(o.Values, sum...)
	return r.Close()
}

// Within Join the mean is over the ranks that train.
func TestPowerSGDInJoin(t *testing.T) {
	all(t, 3, func(rank int) error {
		r, err := newLowRank(true, ddp.Options{})
		if err != nil {
			return err
		}
		err = r.Join(bg, func() error {
			for step := range 1 + rank {
				got, err := meanBy(r, products(0, 2), float32(rank))
				if err != nil {
					return err
				}
				require.Less(t, distance(doubles(got), meanOf(1, 2)), 1e-5, "step %d", step)
				require.InDelta(t, float64(step+2)/2, ddp.Grad[float32](r, 1)[0], 1e-6)
			}
			return nil
		})
		return errors.Join(err, r.Close())
	})
}

// A gradient that is not finite, or of which Q is not, is lost as a whole on all ranks, and the steps after it are not:
// error feedback stays finite.
func TestPowerSGDLosesOneStep(t *testing.T) {
	const rows, columns = 20, 20
	for name, spoil := range map[string]func(rank int, g []float32){
		"NaN": func(rank int, g []float32) {
			if rank == 1 {
				g[5] = float32(math.NaN())
			}
		},
		"a long column": func(_ int, g []float32) { // P is finite
			for i := range g {
				g[i] = 0
				if i%columns == 0 {
					g[i] = 3e38
				}
			}
		},
		"a long column of a rank": func(rank int, g []float32) {
			for i := range g {
				if rank == 1 && i%columns == 0 {
					g[i] = 3e38
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			all(t, 2, func(rank int) error {
				w := ddp.Param("w", make([]float32, rows*columns), nil, rows, columns)
				r, err := ddp.New(bg, world(), []ddp.Parameter{w}, ddp.Options{Hooks: ddp.Hooks{Float32: ddp.PowerSGD(1)}})
				if err != nil {
					return err
				}
				for step := range 3 {
					g := ddp.Grad[float32](r, 0)
					for i := range g {
						g[i] = float32((1 + i/columns) * (1 + step + i%columns) * (1 + rank))
					}
					want := 1.5 * float32(7*(step+9))
					if step == 1 {
						spoil(rank, g)
					}
					r.Ready(0)
					if err := r.Wait(bg); err != nil {
						return err
					}

					isLost := func(x float32) bool { return math.IsNaN(float64(x)) }
					if step == 1 {
						require.False(t, slices.ContainsFunc(g, func(x float32) bool { return !isLost(x) }))
						continue
					}
					require.InEpsilon(t, want, g[6*columns+8], 1e-4, "step %d", step)
				}
				return r.Close()
			})
		})
	}
}
