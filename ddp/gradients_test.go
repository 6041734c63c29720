package ddp_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
)

// All types of gradients are clipped, and equal on all ranks.
func TestClipGradNorm(t *testing.T) {
	clip(t, func(x float64) float64 { return x })
	clip(t, func(x float64) float32 { return float32(x) })
	clip(t, func(x float64) half.Float16 { return half.NewFloat16(float32(x)) })
	clip(t, func(x float64) half.BFloat16 { return half.NewBFloat16(float32(x)) })
}

func clip[T ddp.Float](t *testing.T, of func(float64) T) {
	all(t, 2, func(rank int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("a", make([]T, 1), nil), ddp.Param("b", make([]T, 1), nil)}, ddp.Options{})
		if err != nil {
			return err
		}
		ddp.Grad[T](r, 0)[0], ddp.Grad[T](r, 1)[0] = of(3), of(4)
		if norm, err := r.ClipGradNorm(10); err != nil || norm != 5 || ddp.Grad[T](r, 0)[0] != of(3) {
			return fmt.Errorf("the norm is %v, a gradient %v, and the error %w", norm, ddp.Grad[T](r, 0)[0], err)
		}
		if norm, err := r.ClipGradNorm(2.5); err != nil || norm != 5 {
			return fmt.Errorf("the norm is %v, and the error %w", norm, err)
		}
		if norm, err := r.ClipGradNorm(math.Inf(1)); err != nil || math.Abs(norm-2.5) > 0.01 {
			return fmt.Errorf("the norm is %v after it was clipped to 2.5, and the error %w", norm, err)
		}
		for _, limit := range []float64{-1, -math.SmallestNonzeroFloat64, math.Inf(-1), math.NaN()} {
			before := ddp.Grad[T](r, 0)[0]
			norm, err := r.ClipGradNorm(limit)
			if err := errors.Join(equal("error", fmt.Sprint(err), fmt.Sprintf("ddp: ClipGradNorm: the limit is %v, and must be at least 0", limit)),
				equal("norm", norm, 0), equal("gradient", ddp.Grad[T](r, 0)[0], before)); err != nil {
				return err
			}
			if _, ok := errors.AsType[*ccl.InvalidArgumentError](err); !ok {
				return fmt.Errorf("the error is a %T", err)
			}
		}
		return r.Close()
	})
}

// Gradients of float64 are clipped although their squares, or their norm, are above the largest
// number or below the smallest.
func TestClipGradNormOfExtremes(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ a, b, limit, norm, clippedA, clippedB float64 }{
		{3e200, 4e200, 1, 5e200, 0.6, 0.8},
		{3e200, -4e200, 5e201, 5e200, 3e200, -4e200},
		{3e200, 4e200, inf, 5e200, 3e200, 4e200},
		{3e200, 4e200, 1e-300, 5e200, 6e-301, 8e-301},
		{3e200, 4e200, 0, 5e200, 0, 0},
		{3e200, 4, 1e200, 3e200, 1e200, 4. / 3},
		{math.MaxFloat64, 0, 2, math.MaxFloat64, 2, 0},
		{math.MaxFloat64, math.MaxFloat64, 1, inf, math.Sqrt2 / 2, math.Sqrt2 / 2},
		{math.MaxFloat64, math.MaxFloat64, inf, inf, math.MaxFloat64, math.MaxFloat64},
		{3e-200, 4e-200, 1, 5e-200, 3e-200, 4e-200},
		{3e-200, 4e-200, 1e-7, 5e-200, 3e-201, 4e-201}, // torch adds 1e-6 to the norm
		{math.SmallestNonzeroFloat64, 0, 1, math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64, 0},
		{0, 0, 1, 0, 0, 0},
		{inf, 1, 1, inf, nan, 0},
		{inf, 1e300, 1, inf, nan, 0},
		{nan, 1e300, 1, nan, nan, nan},
		{nan, inf, 1, nan, nan, nan},
	} {
		t.Run(fmt.Sprint(c.a, c.b, c.limit), func(t *testing.T) {
			all(t, 1, func(int) error {
				r, g, err := three(ddp.Options{}, true)
				if err != nil {
					return err
				}
				g[0][0], g[2][0] = c.a, c.b
				norm, err := r.ClipGradNorm(c.limit)
				return errors.Join(err, near("norm", norm, c.norm), near("a", g[0][0], c.clippedA), near("b", g[2][0], c.clippedB), r.Close())
			})
		})
	}
}

// near returns an error unless two numbers are equal, except for rounding.
func near(what string, got, want float64) error {
	if want == got || math.IsNaN(want) && math.IsNaN(got) || math.Abs(got/want-1) < 1e-14 {
		return nil
	}
	return fmt.Errorf("%s: got %v, want %v", what, got, want)
}
