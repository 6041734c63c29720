package main

import (
	"fmt"
	"time"

	"github.com/goccl/goccl/benchmarks/peers/programs/internal/program"
)

// arguments is the command line.
type arguments struct {
	ranks          int
	alloc          bool // vectors are memory from Alloc
	library, entry string
	budget         time.Duration // for a size
	maxCalls       int64
	compute        time.Duration // before each call
	sizes          []int         // bytes; 0 is a barrier
}

func parseArguments(args []string) (arguments, error) {
	if len(args) < 8 {
		return arguments{}, fmt.Errorf("%d arguments, want 8 or more", len(args))
	}
	var words program.Arguments
	a := arguments{
		ranks:   words.Whole("RANKS", args[0], 1),
		alloc:   words.OneOf("MEMORY", args[1], "private", "alloc") == "alloc",
		library: args[2], entry: args[3],
		budget:   words.Time("BUDGET_MS", args[4], 0.001, time.Millisecond),
		maxCalls: int64(words.Whole("MAX_CALLS", args[5], 1)),
		compute:  words.Time("COMPUTE_US", args[6], 0, time.Microsecond),
	}
	for _, text := range args[7:] {
		a.sizes = append(a.sizes, words.Whole("BYTES", text, 0))
	}
	return a, words.Err
}
