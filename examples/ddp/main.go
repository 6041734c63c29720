// Command ddp is data-parallel training in Go: a multilayer perceptron learns to read handwritten
// digits on several ranks, which average their gradients with package ddp while they compute. It
// trains on one rank first, then on all, and compares the two runs. train.go is the part to read
// and to copy.
//
//	go run github.com/goccl/goccl/examples/ddp -ranks 4
//	goccl run -n 4 ddp
//
// The second line trains on processes: once, on all of them, with the same weights bit by bit. ddp
// -h explains the flags. The exit status is 0 after a training, 1 if it failed, 2 for invalid
// flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
	// Between nodes, under mpirun, mpiexec and srun.
	_ "github.com/goccl/goccl/transport/mpi"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command runs the program and returns the exit status.
func command(args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "ddp: %v\nddp -h explains the flags\n", err)
		return 2
	}

	if err := learn(o, stdout); err != nil {
		fmt.Fprintf(stderr, "ddp: %v\n", err)
		return 1
	}
	return 0
}

// learn trains the same model on rank 0 alone and then on all ranks, and compares the two runs. If
// a launcher started the ranks as processes, it trains once, on all of them. Rank 0 reports.
func learn(o options, out io.Writer) error {
	trainSet, testSet, err := digits.Sets[float32](o.seed)
	if err != nil {
		return err
	}

	if o.checkpoint != "" {
		if err := os.MkdirAll(o.checkpoint, 0o777); err != nil {
			return err
		}
	}

	return dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", o.connect...); err != nil {
			return err
		}

		world, err := dist.Default()
		if err != nil {
			return err
		}

		groups := []*dist.ProcessGroup{world}
		if world.Size() > 1 && !dist.IsLaunched() {
			alone, err := dist.NewGroup([]int{0}) // nil on the other ranks
			if err != nil {
				return err
			}
			groups = []*dist.ProcessGroup{alone, world}
		}

		r := report{io.Discard, o}
		if rank == 0 {
			r.out = out
		}
		if err := r.header(world, trainSet.Len(), testSet.Len()); err != nil {
			return err
		}

		var runs []*run
		started := readCoreTime()
		for _, group := range groups {
			if group != nil {
				o := o
				if group != world {
					o.checkpoint = ""
				}
				done, err := train(ctx, group, o, trainSet, testSet, r)
				if err != nil {
					return err // the calls of the other ranks fail too
				}
				runs = append(runs, done)
			}

			if err := dist.Barrier(dist.WithCallTimeout(-1)); err != nil { // until rank 0 has trained alone
				return err
			}
		}
		if err := dist.DestroyProcessGroup(); err != nil || rank > 0 {
			return err
		}

		last := runs[len(runs)-1]
		if !dist.IsLaunched() && last.from == 0 {
			if err := r.comparison(runs, readCoreTime().othersSince(started)); err != nil {
				return err
			}
		}
		r.result(runs)
		return nil
	}, o.ranks...)
}
