package ddp_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
)

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
				r, err := ddp.New(bg, world(), []ddp.Parameter[float32]{{Name: "a", Data: make([]float32, 3), Grad: grad}}, ddp.Options[float32]{Hook: c.hook()})
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

// All types of gradients are clipped, and equal on all ranks.
func TestClipGradNorm(t *testing.T) {
	clip(t, func(x float64) float64 { return x })
	clip(t, func(x float64) float32 { return float32(x) })
	clip(t, func(x float64) half.Float16 { return half.NewFloat16(float32(x)) })
	clip(t, func(x float64) half.BFloat16 { return half.NewBFloat16(float32(x)) })
}

func clip[T ddp.Float](t *testing.T, of func(float64) T) {
	all(t, 2, func(rank int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter[T]{{Name: "a", Data: make([]T, 1)}, {Name: "b", Data: make([]T, 1)}}, ddp.Options[T]{})
		if err != nil {
			return err
		}
		r.Grad(0)[0], r.Grad(1)[0] = of(3), of(4)
		if norm, err := r.ClipGradNorm(10); err != nil || norm != 5 || r.Grad(0)[0] != of(3) {
			return fmt.Errorf("the norm is %v, and a gradient %v: %w", norm, r.Grad(0)[0], err)
		}
		if norm, err := r.ClipGradNorm(2.5); err != nil || norm != 5 {
			return fmt.Errorf("the norm is %v: %w", norm, err)
		}
		if norm, err := r.ClipGradNorm(math.Inf(1)); err != nil || math.Abs(norm-2.5) > 0.01 {
			return fmt.Errorf("the norm is %v after it was clipped to 2.5: %w", norm, err)
		}
		return r.Close()
	})
}
