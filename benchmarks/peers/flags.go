package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/workload"
)

const usage = `peers times goccl's all-reduce and barriers, between goroutines and between processes,
beside those of Open MPI, MPICH and torch's gloo, as far as they are installed, and shows
how many times as long they take as goccl's processes.

Usage:

  peers [flags]

Examples:

  peers                            everything, a quarter of an hour on 2 cores
  peers -only openmpi -ranks 2     two ranks, Open MPI only
  peers -sizes 4,1KiB -passes 15   small calls, more often
  peers -compute 250us             ranks that compute between their calls
  peers -workloads resnet50 -ranks 2
                                   steps of data parallel training, beside torch's
  peers -overhead -ranks 2 -sizes 4,1KiB,4KiB,1MiB
                                   MPI called from Go, and by the algorithm mpi, beside MPI called from C
  nodes.sh 2 0 "" peers -nodes node0,node1 -ranks 2
                                   over TCP, between stand-ins for nodes
  peers -nodes lo -ranks 2,4       over TCP, on this machine: each rank is a node of its own

Flags:

`

// options is the command line.
type options struct {
	ranks   []int
	sizes   []int // bytes; 0 is a barrier
	passes  int
	budget  time.Duration // for a size, in a pass
	compute time.Duration // that a rank computes before each call
	limit   time.Duration // for a contestant's turn; then it is killed
	only    []string      // names of libraries; empty: all
	// workloads are compared instead of sizes, with torch alone; see package workload.
	workloads []string
	// overhead: MPI called from Go and from C is compared instead.
	overhead bool
	nodes    []string // between which sizes are compared instead, made by nodes.sh
}

func (o options) budgetMS() string { return strconv.FormatFloat(o.budget.Seconds()*1e3, 'f', -1, 64) }

func (o options) computeUS() float64 { return float64(o.compute.Nanoseconds()) / 1e3 }

// parseFlags parses the command line. For -h it writes the help to out
// and returns flag.ErrHelp.
func parseFlags(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // command prints the error
	ranks := flags.String("ranks", "2,4,8", "`numbers` of ranks")
	sizes := flags.String("sizes", "0,4,64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB",
		"`bytes` of a rank's vector, multiples of 4; 0 is a barrier")
	only := flags.String("only", "", "`names` of libraries to compare with: "+strings.Join(libraryNames(), ", ")+"; by default all")
	flags.IntVar(&o.passes, "passes", 9, "`turns` that each contestant gets, one in each pass; the medians over them are shown")
	flags.DurationVar(&o.budget, "budget", 50*time.Millisecond, "`time` for a size in a pass; at least 5 calls are made")
	flags.DurationVar(&o.compute, "compute", 0, "`time` that every rank computes before each call, 0.9 to 1.1 times as long")
	workloads := flags.String("workloads", "", "`names` of networks, whose steps of training are compared with torch's instead: "+strings.Join(workload.Names(), ", "))
	flags.BoolVar(&o.overhead, "overhead", false, "compare MPI's all-reduce called from C, called from Go, and by goccl's algorithm mpi instead")

	nodes := flags.String("nodes", "", "`names` of the stand-ins for nodes that benchmarks/peers/nodes.sh has made, or lo, which is one for each rank on this machine, between which sizes are compared over TCP instead")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, usage)
			flags.SetOutput(out)
			flags.PrintDefaults()
		}
		return o, err
	}

	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: peers takes flags only", flags.Arg(0))
	}
	if o.passes < 1 || o.budget <= 0 {
		return o, fmt.Errorf("-passes is %d and -budget is %v, want at least one pass and some time", o.passes, o.budget)
	}
	if o.compute < 0 || o.compute > time.Second {
		return o, fmt.Errorf("-compute is %v, want a time up to 1s", o.compute)
	}

	for word := range strings.SplitSeq(*ranks, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 2 {
			return o, fmt.Errorf("-ranks: %q is no number from 2", word)
		}
		o.ranks = append(o.ranks, n)
	}

	for word := range strings.SplitSeq(*sizes, ",") {
		n, err := parseSize(word)
		if err != nil {
			return o, fmt.Errorf("-sizes: %w", err)
		}
		o.sizes = append(o.sizes, n)
	}
	slices.Sort(o.ranks)
	slices.Sort(o.sizes)
	o.ranks, o.sizes = slices.Compact(o.ranks), slices.Compact(o.sizes)
	if o.overhead { // barriers are measured in any case
		o.sizes = slices.DeleteFunc(o.sizes, func(bytes int) bool { return bytes == 0 })
	}
	// Starting takes seconds, and some calls of the largest sizes exceed the budget.
	o.limit = 3*time.Minute + 10*(o.budget+10*o.compute)*time.Duration(len(o.sizes))
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}

	if *workloads != "" {
		o.workloads = strings.Split(*workloads, ",")
		for _, given := range []string{"sizes", "only", "compute"} {
			if flags.Lookup(given).Value.String() != flags.Lookup(given).DefValue {
				return o, fmt.Errorf("-workloads determines what is compared: omit -%s", given)
			}
		}
	}

	if *nodes != "" {
		o.nodes = strings.Split(*nodes, ",")
		if o.overhead || *workloads != "" || slices.ContainsFunc(o.ranks, func(n int) bool { return n%len(o.nodes) != 0 }) {
			return o, errors.New("-nodes compares sizes, with equally many ranks on each node: give -ranks multiples of the number of nodes, and omit -workloads and -overhead")
		}
	}
	if o.overhead && (len(o.workloads) > 0 || o.compute > 0) {
		return o, errors.New("-overhead compares calls of ranks that do not compute: omit -workloads and -compute")
	}

	for _, name := range o.workloads {
		if _, err := workload.Named(name); err != nil {
			return o, fmt.Errorf("-workloads: %w", err)
		}
	}
	for _, name := range o.only {
		if !slices.Contains(libraryNames(), name) {
			return o, fmt.Errorf("-only: %q is none of %s", name, strings.Join(libraryNames(), ", "))
		}
	}
	return o, nil
}
