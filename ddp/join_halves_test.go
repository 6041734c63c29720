package ddp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
)

// halvesInJoin are gradients whose mean is a float16 although their sum is not, or would lose
// digits if it were divided by more ranks than train: the largest number, one that four ranks
// cannot add up, and the smallest.
var halvesInJoin = []float32{65504, 40000, -40000, 0x1p-24}

// evenAndUneven makes, within Join, one step on all ranks and one on all except rank 0. Gradients
// are equal on all ranks that train, so that their mean is what they were.
func evenAndUneven[T ddp.Float](rank int, r *ddp.Reducer, grad []T, of func(float32) T) error {
	step := func() error {
		for i, x := range halvesInJoin {
			grad[i] = of(x)
		}
		r.Ready(0)
		if err := r.Wait(bg); err != nil {
			return err
		}
		for i, x := range halvesInJoin {
			if grad[i] != of(x) {
				return fmt.Errorf("the mean of %v is %v", x, grad[i])
			}
		}
		return nil
	}
	err := r.Join(bg, func() error {
		if err := step(); err != nil || rank == 0 {
			return err
		}
		return step()
	})
	return errors.Join(err, r.Close())
}

// Within Join the mean of float16 gradients is that of the ranks that train, also where their sum
// is above the largest float16, and where a share of it is below the smallest.
func TestMeansOfHalvesInJoin(t *testing.T) {
	all(t, 4, func(rank int) error {
		n := len(halvesInJoin)
		grad := make([]half.Float16, n)
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]half.Float16, n), grad)}, ddp.Options{})
		if err != nil {
			return err
		}
		return evenAndUneven(rank, r, grad, half.NewFloat16)
	})
}

// The same of float32 gradients that the hook Float16 shortens.
func TestCompressedMeansInJoin(t *testing.T) {
	all(t, 4, func(rank int) error {
		n := len(halvesInJoin)
		grad := make([]float32, n)
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, n), grad)}, ddp.Options{Hooks: ddp.Hooks{Float32: ddp.Float16()}})
		if err != nil {
			return err
		}
		return evenAndUneven(rank, r, grad, func(x float32) float32 { return x })
	})
}
