package ddp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// The slices of a rank, for offsets in memory that all ranks of a test have in common.
const (
	values, grads, buffers = 0, 2, 4 // and the number of the parameter or buffer
	sliceCount             = 7       // the buffers are three
)

// Slices of a rank, or of goroutine ranks, that have memory in common are an error of New on all
// ranks, at any size. It names the slices: a script's package-level gradients belong to all of its
// ranks.
func TestOverlappingSlices(t *testing.T) {
	const (
		between = " overlap; ranks that are goroutines have slices of their own: make them in the function that each rank runs, not at package level"
		within  = " overlap: give each memory of its own, and pass a parameter with two uses once"
	)
	type at map[int]int // offsets of slices
	for name, c := range map[string]struct {
		length    int // of parameters
		zero, one at  // on ranks 0 and 1
		text      string
	}{
		"package-level gradients":     {2, at{grads: 0}, at{grads: 0}, `ranks 0 and 1: the gradient of "a" and the gradient of "a"` + between},
		"large gradients":             {1 << 17, at{grads: 0}, at{grads: 0}, `ranks 0 and 1: the gradient of "a" and the gradient of "a"` + between},
		"package-level values":        {2, at{values + 1: 0}, at{values + 1: 0}, `ranks 0 and 1: the values of "b" and the values of "b"` + between},
		"package-level buffers":       {2, at{buffers: 0}, at{buffers: 0}, `ranks 0 and 1: the buffer "0" and the buffer "0"` + between},
		"gradients of ranks, partly":  {2, at{grads: 0}, at{grads + 1: 1}, `ranks 0 and 1: the gradient of "a" and the gradient of "b"` + between},
		"values and another's buffer": {2, at{buffers + 1: 0}, at{values: 3}, `ranks 0 and 1: the buffer "1" and the values of "a"` + between},
		"gradient and its values":     {2, nil, at{values: 0, grads: 0}, `rank 1: the values of "a" and the gradient of "a"` + within},
		"gradient and other values":   {2, at{values + 1: 0, grads: 1}, nil, `rank 0: the values of "b" and the gradient of "a"` + within},
		"gradients, partly":           {2, at{grads: 0, grads + 1: 1}, nil, `rank 0: the gradient of "a" and the gradient of "b"` + within},
		"gradients, wholly":           {2, at{grads: 0, grads + 1: 0}, nil, `rank 0: the gradient of "a" and the gradient of "b"` + within},
		"values":                      {2, at{values: 0, values + 1: 0}, nil, `rank 0: the values of "a" and the values of "b"` + within},
		"gradient and buffer":         {2, at{grads: 3, buffers: 0}, nil, `rank 0: the buffer "0" and the gradient of "a"` + within},
		"buffers":                     {2, at{buffers: 0, buffers + 1: 3}, nil, `rank 0: the buffer "0" and the buffer "1"` + within},
		"in the same one":             {2, at{buffers: 0, grads: 0, values: 2}, nil, `rank 0: the gradient of "a" and the buffer "0"` + within},
		"side by side":                {2, at{values: 0, values + 1: 2, grads: 4, buffers: 6, buffers + 1: 10}, at{grads: 14, grads + 1: 16, values: 18}, ""},
		"no elements":                 {0, at{grads: 1, values: 1, buffers: 0, buffers + 2: 1}, at{grads: 1, buffers + 2: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			common := make([]float32, 1<<18)
			for rank, err := range spawn(t, 2, func(rank int) error {
				slices := [sliceCount][]float32{}
				for i := range slices {
					slices[i] = make([]float32, []int{c.length, c.length, c.length, c.length, 4, 4, 0}[i])
					if from, isCommon := []at{c.zero, c.one}[rank][i]; isCommon {
						slices[i] = common[from:][:len(slices[i])]
					}
				}
				var tensors []ddp.Tensor
				for i, b := range slices[buffers:] {
					tensors = append(tensors, ddp.Buffer(fmt.Sprint(i), b))
				}
				r, err := ddp.New(bg, world(), []ddp.Parameter{
					ddp.Param("a", slices[values], slices[grads]),
					ddp.Param("b", slices[values+1], slices[grads+1]),
				}, ddp.Options{Buffers: tensors})
				if err != nil {
					return err
				}
				return r.Close()
			}) {
				if c.text == "" {
					require.NoError(t, err, "rank %d", rank)
					continue
				}
				require.EqualError(t, err, "ddp: New: "+c.text, "rank %d", rank)
				require.ErrorAs(t, err, new(*ccl.InvalidArgumentError))
			}
		})
	}
}

// In a group of other ranks than the job's, the error names ranks of the job, as all errors of New do.
func TestOverlapInAGroup(t *testing.T) {
	common := make([]float32, 4)
	for rank, err := range spawn(t, 3, func(rank int) error {
		group, err := dist.NewGroup([]int{1, 2})
		if err != nil || rank == 0 {
			return err
		}
		_, err = ddp.New(bg, group, []ddp.Parameter{ddp.Param("a", common[:2], common[2:])}, ddp.Options{})
		return err
	}) {
		if rank == 0 {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, `ddp: New: ranks 1 and 2: the values of "a" and the values of "a" overlap; `)
	}
}
