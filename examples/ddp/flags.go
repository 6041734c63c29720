package main

import (
	_ "embed" // the text of -h
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
)

//go:embed usage.txt
var usage string

// options is the command line. All ranks have the same.
type options struct {
	ranks          []dist.SpawnOption
	connect        []dist.InitOption
	layers         []int // units of the model: pixels first, classes last
	epochs         int
	batch          int // samples per step of all ranks together, rounded up to a multiple of the ranks
	rate, momentum float64
	seed           uint64
	plot           string // path of the picture; empty: none
	shards         int    // logical shards of a step; 0: each rank is one
	checkpoint     string // directory of checkpoints; empty: none
}

// parseFlags parses the command line. For -h it writes the help to out and returns flag.ErrHelp.
func parseFlags(args []string, out io.Writer) (options, error) {
	o := options{layers: []int{digits.Pixels, 512, 256, digits.Classes}, momentum: 0.9}
	ranks, all := 0, max(2, runtime.GOMAXPROCS(0)) // one rank has nothing to average
	if dist.IsLaunched() {
		all = 0 // as many as the launcher has started
	}
	flags := flag.NewFlagSet("ddp", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // command prints the error
	flags.IntVar(&ranks, "ranks", all, "number of `ranks`; by default the usable cores, at least 2; under a launcher its number of ranks")
	flags.IntVar(&o.epochs, "epochs", 20, "`passes` over the training set")
	flags.IntVar(&o.batch, "batch", 128, "`samples` per step of all ranks together, rounded up to a multiple of the ranks")
	flags.Float64Var(&o.rate, "lr", 0.05, "learning `rate`")
	flags.Uint64Var(&o.seed, "seed", 1, "`seed` of the split, the initial weights and the order of the samples")
	flags.StringVar(&o.plot, "plot", "ddp-loss.png", "`path` of the picture of the loss, a PNG file; empty: none; never under a launcher")
	flags.IntVar(&o.shards, "shards", 0, "logical `shards` of a step: the weights do not depend on the number of ranks, which is at most as large; 0: each rank is one")
	flags.StringVar(&o.checkpoint, "checkpoint", "", "`directory` of checkpoints: the training on all ranks goes on from the newest, and writes one after each epoch")

	connect := func(name, help string, option func(string) dist.InitOption) {
		flags.Func(name, help, func(value string) error { o.connect = append(o.connect, option(value)); return nil })
	}
	connect("config", "configuration `file`; by default what dist finds: $GOCCL_CONFIG, ./ccl.yaml, the built-in one", dist.WithConfigFile)
	connect("algorithm", "`name` of an algorithm of the configuration; by default the configuration's choice", dist.WithAlgorithm)
	connect("transport", "`name` of a transport; by default the configuration's choice", dist.WithTransport)

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, usage)
			flags.SetOutput(out)
			flags.PrintDefaults()
		}
		return o, err
	}

	if ranks != 0 || all != 0 {
		o.ranks = append(o.ranks, dist.WithRanks(ranks))
	}

	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: ddp takes flags only", flags.Arg(0))
	case ranks < 1 && ranks != all:
		return o, fmt.Errorf("-ranks is %d, want at least 1", ranks)
	// The training.
	case o.epochs < 1:
		return o, fmt.Errorf("-epochs is %d, want at least 1", o.epochs)
	case o.batch < 1:
		return o, fmt.Errorf("-batch is %d, want at least 1", o.batch)
	case !(o.rate > 0) || math.IsInf(o.rate, 1):
		return o, fmt.Errorf("-lr is %v, want a positive number", o.rate)
	case o.plot != "" && filepath.Ext(o.plot) != ".png":
		return o, fmt.Errorf("-plot is %q, want a name that ends in .png, or '' for no picture", o.plot)
	}
	return o, nil
}
