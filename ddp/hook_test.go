package ddp_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
)

// careless is a hook that gives the bucket other slices, instead of writing to those that it has.
type careless struct{ isLong bool }

func (careless) Start(b *ddp.Bucket[float64]) *ccl.Work {
	clear(b.Parameters)
	b.Gradients = slices.Clone(b.Gradients)
	return startedBy(func(async ccl.CallOption) error {
		return ccl.AllReduce(bg, b.Comm, b.Gradients, b.Gradients, b.Op, async)
	})
}

func (h careless) Finish(b *ddp.Bucket[float64]) error {
	b.Gradients = slices.Clone(b.Gradients)
	for i := range b.Gradients {
		b.Gradients[i] *= 3
	}
	if h.isLong {
		b.Gradients = append(b.Gradients, 0)
	}
	return nil
}

// What a hook leaves in Bucket.Gradients is the result, also if that is another slice. One of another
// length fails the step.
func TestHookThatReplacesGradients(t *testing.T) {
	for _, views := range []bool{false, true} {
		all(t, 2, func(rank int) error {
			r, g, err := three(ddp.Options{Hooks: ddp.Hooks{Float64: careless{}}}, views)
			if err != nil {
				return err
			}
			step := func() error {
				mean, err := makeStep(r, g, float64(rank))
				return errors.Join(err, equal("mean", mean, 1.5))
			}
			return errors.Join(step(), step(), r.Join(bg, step), r.Close())
		})
	}
	for rank, err := range spawn(t, 2, func(int) error {
		r, g, err := three(ddp.Options{Hooks: ddp.Hooks{Float64: careless{true}}}, true)
		if err != nil {
			return err
		}
		return readyAll(r, g)
	}) {
		require.ErrorContains(t, err, "the hook has left 2 gradients of 1", "rank %d", rank)
	}
}

// Hooks that shorten gradients give the mean in their precision, also within Join.
func TestCompression(t *testing.T) {
	for name, c := range map[string]struct {
		hook func() ddp.Hook[float32]
		want func(x float32) float32
	}{
		"float16":  {ddp.Float16, func(x float32) float32 { return half.NewFloat16(x).Float32() }},
		"bfloat16": {ddp.BFloat16, func(x float32) float32 { return half.NewBFloat16(x).Float32() }},
	} {
		t.Run(name, func(t *testing.T) {
			all(t, 2, func(rank int) error {
				grad := make([]float32, 3)
				r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]float32, 3), grad)}, ddp.Options{Hooks: ddp.Hooks{Float32: c.hook()}})
				if err != nil {
					return err
				}
				step := func() error {
					for i := range grad {
						grad[i] = 0.1 * float32(i+1) // equal on both: the mean is what rounding leaves
					}
					r.Ready(0)
					if err := r.Wait(bg); err != nil {
						return err
					}
					for i, x := range grad {
						if want := c.want(0.1 * float32(i+1)); x != want {
							return fmt.Errorf("gradient %d is %v, want %v", i, x, want)
						}
					}
					return nil
				}
				return errors.Join(step(), step(), r.Join(bg, step), step(), r.Close())
			})
		})
	}
}
