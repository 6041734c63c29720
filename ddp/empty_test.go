package ddp_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// Parameters without elements take part in everything, and change nothing, as in torch.
func TestEmptyParameters(t *testing.T) { everywhere(t, "empty parameters", 1, succeeded) }

func emptyParameters(rank, ranks int, _ *outcome) error {
	for _, views := range []bool{false, true} {
		for _, opts := range []ddp.Options{{}, {FindUnused: true}, {StaticGraph: true}, {Hooks: ddp.Hooks{Float32: ddp.Float16()}}, {FirstBucketBytes: 1, BucketBytes: 1}} {
			for _, lengths := range [][]int{{0}, {0, 2, 0, 0, 70_000, 0}, {3, 0}} {
				if err := trainWithEmpty(rank, ranks, views, opts, lengths); err != nil {
					return fmt.Errorf("views %v, options %+v, lengths %d: %w", views, opts, lengths, err)
				}
			}
		}
	}
	return nil
}

func trainWithEmpty(rank, ranks int, views bool, opts ddp.Options, lengths []int) error {
	var params []ddp.Parameter
	for i, n := range lengths {
		shape, grad := []int{n}, []float32(nil)
		if n == 0 {
			shape = []int{4, 0}
		}
		if !views && (n > 0 || i > 0) { // a nil gradient without elements is neither a view nor the program's own
			grad = make([]float32, n)
		}
		params = append(params, ddp.Param(fmt.Sprint(i), make([]float32, n), grad, shape...))
	}
	opts.Buffers = []ddp.Tensor{ddp.Buffer("none", []float32{}), ddp.Buffer("rank", []float32{float32(rank)})}
	r, err := ddp.New(bg, world(), params, opts)
	if err != nil {
		return err
	}
	step := func() error {
		for i := range params {
			grad := ddp.Grad[float32](r, i)
			for j := range grad {
				grad[j] = float32(rank)
			}
			r.Ready(i)
		}
		if err := r.Wait(bg); err != nil {
			return err
		}
		for i, n := range lengths {
			want := slices.Repeat([]float32{float32(ranks-1) / 2}, n)
			if grad := ddp.Grad[float32](r, i); !slices.Equal(grad, want) {
				return fmt.Errorf("a gradient of %d elements: %v", n, grad[:min(len(grad), 9)])
			}
		}
		_, err := r.ClipGradNorm(1e9)
		return err
	}
	if err := errors.Join(step(), step(), r.Join(bg, step), step()); err != nil {
		return err
	}
	if opts.FindUnused || opts.StaticGraph || opts.Hooks.Float32 != nil {
		return r.Close()
	}
	path := filepath.Join(os.TempDir(), fmt.Sprint("goccl-ddp-empty-", os.Getpid()))
	if err := dist.BroadcastObject(&path, 0); err != nil {
		return err
	}
	err = errors.Join(r.Save(bg, path, nil), r.Load(bg, path, nil), dist.Barrier())
	if rank == 0 {
		err = errors.Join(err, os.Remove(path))
	}
	return errors.Join(err, r.Close())
}

// A shape has as many elements as its slice also where the product of its extents overflows.
func TestShapeThatOverflows(t *testing.T) {
	for _, shape := range [][]int{{1 << 32, 1 << 32}, {1 << 62, 4}, {-1 << 63, 2}, {1 << 32, 1<<32 + 1}} {
		errs := spawn(t, 1, func(int) error {
			_, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param[float32]("a", nil, nil, shape...)}, ddp.Options{})
			return err
		})
		require.ErrorContains(t, errs[0], "and 0 elements")
	}
	all(t, 1, func(int) error {
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param[float32]("a", nil, nil, 1<<62, 4, 0)}, ddp.Options{})
		if err != nil {
			return err
		}
		return r.Close()
	})
}
