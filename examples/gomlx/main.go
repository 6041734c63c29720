// Command gomlx trains a model of GoMLX (github.com/gomlx/gomlx) on several ranks: GoMLX, on its
// pure-Go backend, computes, and package ddp averages the gradients. trainer.go is the part to
// read and to copy.
//
//	go run . -ranks 4
//	go build . && goccl run -n 4 ./gomlx
//
// The first line has goroutines as ranks, the second processes. Both learn the same weights, bit
// by bit. The program is a module of its own, so that goccl does not depend on GoMLX.
//
// Every rank has a GoMLX backend, a context with the model's variables, and two graphs. Graph A
// computes the loss and the gradients of the rank's part of a batch. Package ddp replaces the
// gradients by their mean over all ranks. Graph B is an optimizer of GoMLX that gets this mean.
// What the optimizer needs lies in the context, too, and stays equal on all ranks, because the
// gradients are.
//
// Goroutines share the data sets, which are read-only, and nothing of GoMLX. The exit status is 0
// after a training, 1 if it failed, 2 for invalid flags.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/gomlx/gomlx/backends/simplego"
	mltrain "github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
)

func main() {
	ranks := flag.Int("ranks", 0, "`number` of ranks; 0: one for each usable core, or as many as the launcher started")
	epochs := flag.Int("epochs", 10, "`passes` over the digits")
	flag.Parse()
	if flag.NArg() > 0 || *ranks < 0 || *epochs < 1 {
		fmt.Fprintln(os.Stderr, "gomlx: want no arguments, -ranks of at least 0 and -epochs of at least 1; gomlx -h explains them")
		os.Exit(2)
	}
	adam := optimizers.Adam().LearningRate(0.002).Done().(mltrain.OptimizeWithGradients)
	if err := run(os.Stdout, *ranks, job{epochs: *epochs, batch: 128, seed: 1, optimizer: adam}); err != nil {
		fmt.Fprintf(os.Stderr, "gomlx: %v\n", err)
		os.Exit(1)
	}
}

// run trains on some ranks, 0 for the default. Rank 0 reports.
func run(out io.Writer, ranks int, j job) error {
	trainSet, testSet, err := digits.Sets[float32](1)
	if err != nil {
		return err
	}
	var hosts dist.SpawnOption
	if ranks > 0 {
		hosts = dist.WithRanks(ranks)
	}

	return dist.Spawn(func(ctx context.Context, rank int) error {
		report := io.Discard
		if rank == 0 {
			report = out
		}

		fmt.Fprintf(report, "GoMLX %s, backend %q (pure Go)\n", gomlxVersion(), simplego.BackendName)
		done, err := train(ctx, j, trainSet, testSet, report)
		if err == nil {
			fmt.Fprintf(report, "test accuracy: %.4f\n", done.accuracy)
			fmt.Fprintf(report, "weights: equal bit by bit on all ranks (sha256 %.16s...)\n", done.weights)
		}
		return err
	}, hosts)
}

// gomlxVersion returns the version of GoMLX that this program was built with.
func gomlxVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/gomlx/gomlx" {
			return module.Version
		}
	}
	return "of an unknown version"
}
