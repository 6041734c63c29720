package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command is the program: it returns the exit status, 0 for success, 1 for a
// failed training and 2 for flags that make no sense.
func command(args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "ddp: %v\nddp -h explains the flags\n", err)
		return 2
	}
	if err := compare(o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "ddp: %v\n", err)
		return 1
	}
	return 0
}

// compare trains the same model on one rank and then on o.ranks, and reports
// how the two runs compare.
func compare(o options, stdout, stderr io.Writer) error {
	digits, err := loadDigits[float32]()
	if err != nil {
		return err
	}
	trainSet, testSet := digits.split(o.job.seed)
	way, err := rehearse(o)
	if err != nil {
		return err
	}
	r := newReport(stdout, stderr, o.job)
	r.header(trainSet.len(), testSet.len(), way)

	defer r.clearBar()

	var runs []run
	if o.ranks > 1 {
		alone := o.job
		// One rank has nobody to choose an algorithm or a transport for.
		alone.connect = []dist.InitOption{dist.WithConfig(ccl.DefaultConfig())}
		base, err := spawn(1, alone, trainSet, testSet, r)
		if err != nil {
			return err
		}
		runs = append(runs, base)
	}
	last, err := spawn(o.ranks, o.job, trainSet, testSet, r)
	if err != nil {
		return err
	}
	return r.summary(append(runs, last), o.plot)
}

// rehearse connects the ranks and lets them go again, so that a mistake in flags
// or configuration shows before anything is trained. It returns in which way the
// gradients will be averaged.
func rehearse(o options) (way string, err error) {
	err = dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", o.job.connect...); err != nil {
			return err
		}
		if rank == 0 {
			group, err := dist.Default()
			if err != nil {
				return err
			}
			if way, err = wayOf(group.Communicator(), o.job); err != nil {
				return err
			}
		}
		return dist.DestroyProcessGroup()
	}, dist.Ranks(o.ranks))
	return way, err
}

// wayOf asks the configuration which kernel will average the gradients, and why.
func wayOf(c *ccl.Communicator, j job) (string, error) {
	bytes := 4 * parameters(j.layers)
	choice, err := c.Settings().Choose(ccl.Shape{
		Collective: ccl.CollAllReduce, Ranks: c.Size(), Bytes: bytes, Total: bytes,
		DType: ccl.Float32, Op: ccl.Avg, Topology: c.Settings().Topology(),
	}, "")
	return fmt.Sprintf("%s over %s (%s)", choice.Entry, c.Transport(), choice.Why), err
}

// run is a finished training: what rank 0 had in the end.
type run struct {
	ranks int
	*result[float32]
}

// spawn trains on the given number of goroutine ranks.
func spawn(ranks int, j job, trainSet, testSet *dataset[float32], watch watcher) (run, error) {
	done := run{ranks: ranks}
	err := dist.Spawn(func(_ context.Context, rank int) error {
		end, err := train(j, trainSet, testSet, watch)
		if rank == 0 {
			done.result = end
		}
		return err
	}, dist.Ranks(ranks))
	return done, err
}
