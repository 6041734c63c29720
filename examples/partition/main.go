// Command partition trains a small convolutional network on images whose rows and columns live on
// 2 x 2 workers, and compares it with the same network on one worker. conv.go is the part to read:
// a distributed layer made of two operators of package primitive.
//
//	go run ./examples/partition
//	goccl run -n 4 -- go run ./examples/partition
//
// The first line has goroutines as workers, the second processes.
//
// The images of a batch are a tensor of batch x channel x height x width, on a Cartesian partition
// of as many dimensions: each worker has a rectangle of every image. The convolutions exchange the
// pixels at the borders of these rectangles. Before the dense layer the features move to a
// partition of the batch: each worker classifies some whole images. All parameters live on the
// first worker, which broadcasts them in each step; their gradients are the sums over all workers.
//
// The network computes in float64 and learns the same on any partition, except for the rounding of
// sums in another order. On the same partition, it learns the same bits in each run.
//
// Goroutines share the images, which are read-only. Everything else moves by operators of package
// primitive. The exit status is 0 after a training, 1 if it failed, 2 for invalid flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/partition"
)

func main() {
	shape := flag.String("shape", "1x1x2x2", "`workers` in each dimension of the images: batch x 1 x height x width")
	epochs := flag.Int("epochs", 10, "`passes` over the images")
	limit := flag.Int("images", 0, "`number` of images to use, at least 10; 0: all of them")
	flag.Parse()

	extents, err := parseShape(*shape)
	switch {
	case flag.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *epochs < 1:
		err = fmt.Errorf("-epochs is %d, want at least 1", *epochs)
	case *limit != 0 && *limit < 10:
		err = fmt.Errorf("-images is %d, want 0 or at least 10", *limit)
	}

	if err != nil {
		fmt.Fprintf(os.Stderr, "partition: %v\n", err)
		os.Exit(2)
	}

	data, err := digits.Load[float64]()
	if err == nil {
		if *limit > 0 {
			data = data.Slice(0, min(*limit, data.Len()))
		}
		err = run(os.Stdout, extents, *epochs, data)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "partition: %v\n", err)
		os.Exit(1)
	}
}

// parseShape reads extents with x between them.
func parseShape(text string) (shape []int, err error) {
	for extent := range strings.SplitSeq(text, "x") {
		n, err := strconv.Atoi(extent)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-shape is %q, want numbers from 1 with x between them", text)
		}
		shape = append(shape, n)
	}
	return shape, nil
}

// run trains on as many workers as the shape has. The process of worker 0 reports.
func run(out io.Writer, shape []int, epochs int, data digits.Set[float64]) error {
	workers := 1
	for _, extent := range shape {
		workers *= extent
	}

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
		report := reporter{out: io.Discard, shape: shape}
		if rank == 0 {
			report.out = out
		}

		if err := compare(ctx, world, shape, epochs, data, report.epoch); err != nil {
			return err
		}
		report.end()
		return errors.Join(world.Close(), dist.DestroyProcessGroup())
	}, dist.WithRanks(workers))
}

// epoch is the result of one pass over the images. What belongs to one worker is known to worker 0
// only.
type epoch struct {
	loss, alone           float64       // mean over the images, in nats: on all workers, and on one
	accuracy              float64       // of all workers' network, on the images held out
	elapsed, aloneElapsed time.Duration // of the training
}

// compare trains on all workers of world, in the shape, and in turns on the first of them alone.
// It calls watch with the results of each epoch.
func compare(ctx context.Context, world *partition.Partition, shape []int, epochs int, data digits.Set[float64],
	watch func(epoch),
) error {
	grid, err := world.Cartesian(ctx, shape...)
	if err != nil {
		return err
	}

	first, err := world.Inclusive(ctx, []int{0})
	if err != nil {
		return err
	}
	alone, err := first.Cartesian(ctx, 1, 1, 1, 1)
	if err != nil {
		return err
	}

	many, err := newTrainer(ctx, grid, data)
	if err != nil {
		return err
	}

	var single *trainer[float64]
	if alone.Active() {
		if single, err = newTrainer(ctx, alone, data); err != nil {
			return err
		}
	}

	for number := range epochs {
		var e epoch
		start := time.Now()
		if e.loss, err = many.epoch(ctx, number); err != nil {
			return err
		}

		e.elapsed = time.Since(start)
		if e.accuracy, err = many.accuracy(ctx); err != nil {
			return err
		}

		if single != nil {
			start = time.Now()
			if e.alone, err = single.epoch(ctx, number); err != nil {
				return err
			}
			e.aloneElapsed = time.Since(start)
		}
		watch(e)
	}

	if single != nil {
		err = single.close()
	}
	return errors.Join(err, many.close(), alone.Close(), first.Close(), grid.Close())
}

// reporter prints the results.
type reporter struct {
	out      io.Writer
	shape    []int
	epochs   int
	farthest float64 // the largest relative difference of two losses
}

func (r *reporter) epoch(e epoch) {
	if r.epochs == 0 {
		fmt.Fprintf(r.out, "%25s %23s\n", r.workers(), "one worker")
		fmt.Fprintf(r.out, "epoch      loss   seconds      loss   seconds  held out\n")
	}
	r.epochs++
	fmt.Fprintf(r.out, "%5d  %.6f  %8.2f  %.6f  %8.2f  %6.2f %%\n",
		r.epochs, e.loss, e.elapsed.Seconds(), e.alone, e.aloneElapsed.Seconds(), 100*e.accuracy)
	r.farthest = max(r.farthest, math.Abs(e.loss-e.alone)/e.alone)
}

func (r *reporter) end() {
	fmt.Fprintf(r.out, "compared: the losses of all epochs on %s and on one worker: "+
		"the largest relative difference is %.1g\n", r.workers(), r.farthest)
}

func (r *reporter) workers() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(r.shape), " ", " x "), "[]") + " workers"
}
