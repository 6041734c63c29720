package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"

	"github.com/goccl/goccl/dist"
)

const usage = `ddp trains a perceptron on handwritten digits, first on one rank, then on
several, which average their gradients, and compares the two.
Started by a launcher as several processes it trains once, on all of them.

Usage:

  ddp [flags]

Examples:

  ddp                              one rank per core
  ddp -ranks 7 -algorithm ring     seven ranks, gradients sent around a ring
  ddp -config my.yaml -plot ''     algorithms by your own rules, no picture
  ddp -epochs 60 -batch 512        larger steps, more of them
  goccl run -n 4 ddp               four ranks that are processes

Flags:

`

// options is the command line.
type options struct {
	ranks int // 0: as many as the launcher has started
	job   job
	plot  string // path of the picture; empty: none
}

// parseFlags parses the command line. For -h it writes the help to out
// and returns flag.ErrHelp.
func parseFlags(args []string, out io.Writer) (options, error) {
	o := options{job: job{layers: []int{pixels, 256, 128, classes}, momentum: 0.9}}
	var config, algorithm, transport string
	all := max(2, runtime.GOMAXPROCS(0)) // one rank has nothing to average
	if dist.IsLaunched() {
		all = 0
	}

	flags := flag.NewFlagSet("ddp", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // command prints the error
	flags.IntVar(&o.ranks, "ranks", all, "number of `ranks`; by default the usable cores, at least 2; under a launcher its number of ranks")
	flags.IntVar(&o.job.epochs, "epochs", 30, "`passes` over the training set")
	flags.IntVar(&o.job.batch, "batch", 128, "`samples` per step of all ranks together, rounded up to a multiple of the ranks")
	flags.Float64Var(&o.job.rate, "lr", 0.05, "learning `rate`")
	flags.Uint64Var(&o.job.seed, "seed", 1, "`seed` of the split, the initial weights and the order of the samples")
	flags.StringVar(&config, "config", "", "configuration `file`; by default what dist finds: $GOCCL_CONFIG, ./ccl.yaml, the built-in one")
	flags.StringVar(&algorithm, "algorithm", "", "`name` of an algorithm of the configuration; by default the configuration's choice")
	flags.StringVar(&transport, "transport", "", "`name` of a transport; by default the configuration's choice")
	flags.StringVar(&o.plot, "plot", "ddp-loss.png", "`path` of the picture of the loss, a PNG file; empty: none; never under a launcher")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, usage)
			flags.SetOutput(out)
			flags.PrintDefaults()
		}
		return o, err
	}

	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: ddp takes flags only", flags.Arg(0))
	case o.ranks < 1 && o.ranks != all:
		return o, fmt.Errorf("-ranks is %d, want at least 1", o.ranks)
	case o.job.epochs < 1:
		return o, fmt.Errorf("-epochs is %d, want at least 1", o.job.epochs)
	case o.job.batch < 1:
		return o, fmt.Errorf("-batch is %d, want at least 1", o.job.batch)
	case !(o.job.rate > 0) || math.IsInf(o.job.rate, 1):
		return o, fmt.Errorf("-lr is %v, want a positive number", o.job.rate)
	case o.plot != "" && filepath.Ext(o.plot) != ".png":
		return o, fmt.Errorf("-plot is %q, want a name that ends in .png, or '' for no picture", o.plot)
	}

	if config != "" {
		o.job.connect = append(o.job.connect, dist.WithConfigFile(config))
	}
	if algorithm != "" {
		o.job.connect = append(o.job.connect, dist.WithAlgorithm(algorithm))
	}
	if transport != "" {
		o.job.connect = append(o.job.connect, dist.WithTransport(transport))
	}
	return o, nil
}
