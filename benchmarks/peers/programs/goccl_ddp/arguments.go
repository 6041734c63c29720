package main

import (
	"fmt"
	"time"

	"github.com/goccl/goccl/benchmarks/peers/programs/internal/program"
)

// arguments is the command line.
type arguments struct {
	ranks          int
	copies         bool   // gradients are the program's own, and copied into buckets
	library, entry string // for the row
	budget         time.Duration
	maxSteps       int64
	name           string // of the workload, for the row
	elements       []int  // the length of each gradient
}

func parseArguments(args []string) (arguments, error) {
	if len(args) < 8 {
		return arguments{}, fmt.Errorf("%d arguments, want 8 or more", len(args))
	}
	var words program.Arguments
	a := arguments{
		ranks:   words.Whole("RANKS", args[0], 1),
		copies:  words.OneOf("FORM", args[1], "views", "copies") == "copies",
		library: args[2], entry: args[3],
		budget:   words.Time("BUDGET_MS", args[4], 0.001, time.Millisecond),
		maxSteps: int64(words.Whole("MAX_STEPS", args[5], 1)),
		name:     args[6],
	}
	for _, text := range args[7:] {
		a.elements = append(a.elements, words.Whole("ELEMENTS", text, 1))
	}
	return a, words.Err
}
