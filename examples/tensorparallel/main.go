// Command tensorparallel divides two dense layers among workers, as Megatron-LM does: the first by
// columns, the second by rows. It compares the result and all gradients with those of one worker.
// mlp.go is the part to read.
//
//	go run ./examples/tensorparallel
//	goccl run -n 3 -- go run ./examples/tensorparallel
//
// Each worker multiplies with its part of the weights. What moves between workers are the
// activations: one operator brings them to all workers before the first product, another sums the
// parts of the result after the second. Each is the adjoint of the other. There are two pairs: one
// for activations that are whole on every worker, and one for activations that are divided by rows
// (sequence parallelism).
//
// All workers make the same random matrices. The exit status is 1 if there is an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/nn"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

func main() {
	workers := flag.Int("workers", 2, "`number` of goroutines; a launcher determines it otherwise")
	flag.Parse()
	var options []dist.SpawnOption
	if !dist.IsLaunched() {
		options = append(options, dist.WithRanks(*workers))
	}
	if err := run(os.Stdout, sizes{rows: 64, inputs: 128, hidden: 512}, options...); err != nil {
		fmt.Fprintf(os.Stderr, "tensorparallel: %v\n", err)
		os.Exit(1)
	}
}

// sizes are the extents of X, rows x inputs, of A, inputs x hidden, and of B, hidden x inputs.
type sizes struct{ rows, inputs, hidden int }

// run compares both forms. The process of worker 0 reports.
func run(out io.Writer, s sizes, options ...dist.SpawnOption) error {
	return dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		group, err := dist.Default()
		if err != nil {
			return err
		}

		world, err := partition.New(ctx, group.Communicator())
		if err != nil {
			return err
		}

		hidden := part(world, s.hidden)
		holds, err := partition.AllGatherData(ctx, world,
			fmt.Sprintf("columns %d to %d of A, rows %[1]d to %[2]d of B", hidden.Lo, hidden.Hi-1))
		if err != nil {
			return err
		}

		whole, err := compare(ctx, world, s, newMLP[float64])
		if err != nil {
			return err
		}
		divided, err := compare(ctx, world, s, newSequenceMLP[float64])
		if err != nil {
			return err
		}

		if rank == 0 {
			fmt.Fprintf(out, "X is %d x %d, A %[2]d x %[3]d, B %[3]d x %[2]d\n", s.rows, s.inputs, s.hidden)
			for worker, text := range holds {
				fmt.Fprintf(out, "worker %d holds %s\n", worker, text)
			}
			fmt.Fprintf(out, "largest difference from one worker, as a part of the largest value:\n")
			fmt.Fprintf(out, "X and Z whole on every worker  %v\n", whole)
			fmt.Fprintf(out, "X and Z divided by rows        %v\n", divided)
		}
		return errors.Join(world.Close(), dist.DestroyProcessGroup())
	}, options...)
}

// differences are the largest differences from one worker's results, as parts of the largest value.
type differences struct{ Z, DX, DA, DB float64 }

func (d differences) String() string {
	return fmt.Sprintf("Z %.0e, dX %.0e, dA %.0e, dB %.0e", d.Z, d.DX, d.DA, d.DB)
}

// compare runs layers forward and backward on random matrices and returns the differences, the
// same on all workers.
func compare[F nn.Float](ctx context.Context, p *partition.Partition, s sizes,
	build func(ctx context.Context, p *partition.Partition, a, b *primitive.Tensor[F]) (*mlp[F], error),
) (differences, error) {
	random := rand.New(rand.NewPCG(1, 2))
	x, dz := noise[F](random, s.rows, s.inputs), noise[F](random, s.rows, s.inputs)
	a, b := noise[F](random, s.inputs, s.hidden), noise[F](random, s.hidden, s.inputs)
	z, dx, da, db := sequential(x, a, b, dz)

	layers, err := build(ctx, p, a, b)
	if err != nil {
		return differences{}, err
	}
	divided := part(p, s.rows)
	if _, isWhole := layers.enter.(spread[F]); !isWhole {
		x, dz, z, dx = rows(x, divided), rows(dz, divided), rows(z, divided), rows(dx, divided)
	}

	gotZ, err := layers.forward(ctx, x)
	if err != nil {
		return differences{}, err
	}
	gotDX, err := layers.backward(ctx, dz)
	if err != nil {
		return differences{}, err
	}

	hidden := part(p, s.hidden)
	all, err := partition.AllGatherData(ctx, p, differences{
		difference(gotZ, z), difference(gotDX, dx),
		difference(layers.da, columns(da, hidden)), difference(layers.db, rows(db, hidden)),
	})
	if err != nil {
		return differences{}, err
	}
	var worst differences
	for _, d := range all {
		worst = differences{max(worst.Z, d.Z), max(worst.DX, d.DX), max(worst.DA, d.DA), max(worst.DB, d.DB)}
	}
	return worst, errors.Join(layers.enter.Close(), layers.leave.Close())
}

// difference returns the largest difference of two tensors, as a part of the largest value:
// infinite if their shapes differ, NaN if an element is.
func difference[F nn.Float](got, want *primitive.Tensor[F]) float64 {
	if !slices.Equal(got.Shape(), want.Shape()) {
		return math.Inf(1)
	}
	var farthest, largest float64
	expected := clone(want).Data()
	for i, v := range clone(got).Data() {
		farthest = max(farthest, math.Abs(float64(v-expected[i])))
		largest = max(largest, math.Abs(float64(expected[i])))
	}
	return farthest / largest
}

// noise returns a tensor of random numbers.
func noise[F nn.Float](random *rand.Rand, shape ...int) *primitive.Tensor[F] {
	t := primitive.NewTensor[F](shape...)
	for i := range t.Data() {
		t.Data()[i] = F(random.NormFloat64())
	}
	return t
}
