package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
	"github.com/goccl/goccl/primitive"
	"github.com/goccl/goccl/primitive/primitivetest"
)

// Divided layers compute what one worker computes, forward and backward, in both forms.
func TestEqualsSequential(t *testing.T) {
	for _, workers := range []int{1, 2, 3} {
		for _, s := range []sizes{{6, 4, 12}, {5, 3, 7}, {3, 1, 3}} {
			t.Run(fmt.Sprint(workers, s), func(t *testing.T) {
				partitiontest.Workers(t, workers, func(ctx context.Context, world *partition.Partition) error {
					whole, err := compare(ctx, world, s, newMLP[float64])
					if err != nil {
						return err
					}
					divided, err := compare(ctx, world, s, newSequenceMLP[float64])
					if err != nil {
						return err
					}
					single, err := compare(ctx, world, s, newMLP[float32])
					if !whole.within(1e-12) || !divided.within(1e-12) || !single.within(1e-5) {
						return fmt.Errorf("differences: %v; %v; in float32 %v; %w", whole, divided, single, err)
					}
					return err
				})
			})
		}
	}
}

func (d differences) within(limit float64) bool {
	return d.Z <= limit && d.DX <= limit && d.DA <= limit && d.DB <= limit // not if one is not a number
}

// The operators of the sequence-parallel form are adjoints of each other: reversed swaps them.
func TestReversed(t *testing.T) {
	partitiontest.Workers(t, 3, func(ctx context.Context, world *partition.Partition) error {
		gather, err := primitive.NewAllGather[float64](ctx, world, 0, 0)
		if err != nil {
			return err
		}
		scatter := reversed[float64]{gather}
		primitivetest.Adjoint(ctx, t, world, scatter, primitive.NewTensor[float64](7, 2))
		return scatter.Close()
	})
}

// The gradients are the slopes of <Z, dZ>, by central differences.
func TestGradients(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	x, a, b := noise[float64](random, 3, 2), noise[float64](random, 2, 5), noise[float64](random, 5, 2)
	dz := noise[float64](random, 3, 2)
	z, dx, da, db := sequential(x, a, b, dz)
	require.InDelta(t, gelu(x.At(2, 0)*a.At(0, 0)+x.At(2, 1)*a.At(1, 0))*b.At(0, 1)+
		gelu(x.At(2, 0)*a.At(0, 1)+x.At(2, 1)*a.At(1, 1))*b.At(1, 1)+
		gelu(x.At(2, 0)*a.At(0, 2)+x.At(2, 1)*a.At(1, 2))*b.At(2, 1)+
		gelu(x.At(2, 0)*a.At(0, 3)+x.At(2, 1)*a.At(1, 3))*b.At(3, 1)+
		gelu(x.At(2, 0)*a.At(0, 4)+x.At(2, 1)*a.At(1, 4))*b.At(4, 1), z.At(2, 1), 1e-14)
	value := func() (sum float64) {
		z, _, _, _ := sequential(x, a, b, dz)
		for i, v := range z.Data() {
			sum += v * dz.Data()[i]
		}
		return sum
	}
	const h = 1e-5
	for _, c := range [][2]*primitive.Tensor[float64]{{x, dx}, {a, da}, {b, db}} {
		for i, v := range c[0].Data() {
			c[0].Data()[i] = v + h
			above := value()
			c[0].Data()[i] = v - h
			below := value()
			c[0].Data()[i] = v
			require.InDelta(t, (above-below)/(2*h), c[1].Data()[i], 1e-8)
		}
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out, sizes{6, 4, 12}, dist.WithRanks(2)))
	require.Regexp(t, `^X is 6 x 4, A 4 x 12, B 12 x 4
worker 0 holds columns 0 to 5 of A, rows 0 to 5 of B
worker 1 holds columns 6 to 11 of A, rows 6 to 11 of B
largest difference from one worker, as a part of the largest value:
X and Z whole on every worker  Z \S+, dX \S+, dA \S+, dB \S+
X and Z divided by rows        Z \S+, dX \S+, dA \S+, dB \S+
$`, out.String())
}
