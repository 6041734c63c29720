package ddp_test

import (
	"errors"
	"fmt"
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
