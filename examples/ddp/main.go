package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command runs the program and returns the exit status: 0 for success, 1 for a
// failed training, 2 for invalid flags.
func command(args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "ddp: %v\nddp -h explains the flags\n", err)
		return 2
	}
	if err := learn(o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "ddp: %v\n", err)
		return 1
	}
	return 0
}

// learn trains the same model on one rank and then on o.ranks, and compares the
// two runs. If a launcher started the ranks as processes, it trains once, on all of
// them, and the process of rank 0 reports.
func learn(o options, stdout, stderr io.Writer) error {
	digits, err := loadDigits[float32]()
	if err != nil {
		return err
	}
	trainSet, testSet := digits.split(o.job.seed)
	ranks, way, err := rehearse(o)
	if err != nil {
		return err
	}
	r := newReport(stdout, stderr, o.job)
	defer r.clearBar()
	if ranks > 0 {
		r.header(trainSet.len(), testSet.len(), way)
	}
	if dist.IsLaunched() {
		once, err := spawn(ranks, o.job, trainSet, testSet, r)
		if err == nil && ranks > 0 {
			r.ending(once)
		}
		return err
	}

	var runs []run
	if ranks > 1 {
		alone := o.job
		// One rank needs no algorithm and no transport.
		alone.connect = []dist.InitOption{dist.WithConfig(config.Default())}
		base, err := spawn(1, alone, trainSet, testSet, r)
		if err != nil {
			return err
		}
		runs = append(runs, base)
	}
	last, err := spawn(ranks, o.job, trainSet, testSet, r)
	if err != nil {
		return err
	}
	if err := r.comparison(append(runs, last), o.plot); err != nil {
		return err
	}
	r.ending(last)
	return nil
}

// rehearse connects the ranks and disconnects them, so that mistakes in flags
// or configuration show before the training. It returns the number of ranks and how the
// gradients will be averaged: nothing in processes that do not host rank 0.
func rehearse(o options) (ranks int, way string, err error) {
	err = dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", o.job.connect...); err != nil {
			return err
		}
		if rank == 0 {
			group, err := dist.Default()
			if err != nil {
				return err
			}
			ranks = group.Size()
			if way, err = wayOf(group.Communicator(), o.job); err != nil {
				return err
			}
		}
		return dist.DestroyProcessGroup()
	}, hosts(o.ranks))
	return ranks, way, err
}

// hosts is dist.WithRanks, except for 0 ranks: then it is as many as the launcher started.
func hosts(ranks int) dist.SpawnOption {
	if ranks == 0 {
		return dist.SpawnOption{}
	}
	return dist.WithRanks(ranks)
}

// wayOf returns which kernel will average the gradients of the largest layer, and why.
func wayOf(c *ccl.Communicator, j job) (string, error) {
	bytes := 0
	for l := range len(j.layers) - 1 {
		bytes = max(bytes, 4*parameters(j.layers[l:l+2]))
	}
	choice, err := c.Selector().Choose(ccl.Shape{
		Collective: ccl.CollAllReduce, Ranks: c.Size(), Bytes: bytes, Total: bytes,
		DType: ccl.Float32, Op: ccl.Avg, Topology: c.Selector().Topology(),
	}, "")
	return fmt.Sprintf("%s over %s (%s)", choice.Entry, c.Transport(), choice.Why), err
}

// run is a finished training, with the result of rank 0.
type run struct {
	ranks int
	*result[float32]
}

// spawn trains on the given number of ranks. It returns the result of rank 0, nil if
// another process hosts that.
func spawn(ranks int, j job, trainSet, testSet *dataset[float32], watch watcher) (run, error) {
	done := run{ranks: ranks}
	err := dist.Spawn(func(ctx context.Context, rank int) error {
		end, err := train(ctx, j, trainSet, testSet, watch)
		if rank == 0 {
			done.result = end
		}
		return err
	}, hosts(ranks))
	return done, err
}
