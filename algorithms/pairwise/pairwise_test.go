package pairwise_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms/direct" // the default
	"github.com/goccl/goccl/algorithms/pairwise"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/transport/local"
)

func TestConformance(t *testing.T) { ccltest.Test(t, pairwise.Algorithm) }

func FuzzKernels(f *testing.F) { ccltest.Fuzz(f, pairwise.Algorithm) }

// fold is the specification of the order.
func fold(x []float32) float32 {
	if len(x) == 1 {
		return x[0]
	}
	left := 1
	for 2*left < len(x) {
		left *= 2
	}
	return fold(x[:left]) + fold(x[left:])
}

// Reductions give the bits of pairwise summation over the ranks, in place or not, short or long; a
// mean divides the sum once.
func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for ranks := 2; ranks <= 13; ranks++ {
		for _, n := range []int{1, 100, 5000} {
			inputs := make([][]float32, ranks)
			for r := range inputs {
				for range n {
					inputs[r] = append(inputs[r], float32(random.NormFloat64()*random.ExpFloat64()))
				}
			}
			want, means := make([]float32, n), make([]float32, n)
			for i := range want {
				var x []float32
				for _, in := range inputs {
					x = append(x, in[i])
				}
				want[i] = fold(x)
				means[i] = want[i] / 24
			}

			each(t, ranks, func(ctx context.Context, c *ccl.Communicator) error {
				sums, mean := make([]float32, n), append([]float32{}, inputs[c.Rank()]...)
				if err := ccl.AllReduce(ctx, c, inputs[c.Rank()], sums, ccl.Sum, ccl.WithAlgorithm("pairwise")); err != nil {
					return err
				}
				if err := ccl.AllReduce(ctx, c, mean, mean, ccl.AvgOf(24), ccl.WithAlgorithm("pairwise")); err != nil {
					return err
				}
				require.Equal(t, want, sums)
				require.Equal(t, means, mean)
				return nil
			})
		}
	}
}

// The kernels reduce by functions of the library, which operations of users are not.
func TestUserOperation(t *testing.T) {
	op := ccl.NewOp("last of pairwise tests", false, func(dst, _, b []int32) { copy(dst, b) })
	each(t, 2, func(ctx context.Context, c *ccl.Communicator) error {
		x := []int32{1}
		require.ErrorIs(t, ccl.AllReduce(ctx, c, x, x, op, ccl.WithAlgorithm("pairwise")), ccl.ErrNotImplemented)
		return nil
	})
}

// each runs f on every rank of a group.
func each(t *testing.T, ranks int, f func(context.Context, *ccl.Communicator) error) {
	t.Helper()
	errs := make(chan error)
	for _, ep := range local.New(ranks) {
		go func() {
			c, err := ccl.New(context.Background(), ep)
			if err == nil {
				err = f(context.Background(), c)
			}
			errs <- err
		}()
	}
	for range ranks {
		require.NoError(t, <-errs)
	}
}
