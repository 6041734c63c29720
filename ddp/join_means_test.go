package ddp_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// A mean within Join has the bits of the mean outside it. Sums of thirds are not multiples of the number of ranks.
func TestMeansInJoin(t *testing.T) {
	for _, ranks := range []int{3, 4} {
		all(t, ranks, meansInJoin[float64])
		all(t, ranks, meansInJoin[float32])
	}
}

func meansInJoin[T float32 | float64](rank int) error {
	group, err := dist.Default()
	if err != nil {
		return err
	}
	grad := make([]T, 100)
	r, err := ddp.New(bg, group, []ddp.Parameter{ddp.Param("a", make([]T, len(grad)), grad)}, ddp.Options{})
	if err != nil {
		return err
	}
	step := func() error {
		for i := range grad {
			grad[i] = T(10*rank+i) / 3
		}
		r.Ready(0)
		return r.Wait(bg)
	}
	err = step()
	outside := slices.Clone(grad)
	return errors.Join(err, r.Join(bg, step), equal("means", fmt.Sprint(grad), fmt.Sprint(outside)), r.Close())
}
