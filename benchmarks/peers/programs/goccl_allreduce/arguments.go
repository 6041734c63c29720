package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
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

func parseArguments(args []string) (a arguments, err error) {
	if len(args) < 8 {
		return a, fmt.Errorf("%d arguments, want 8 or more", len(args))
	}
	whole := func(name, text string, least int) int {
		n, bad := strconv.Atoi(text)
		if bad != nil || n < least {
			err = errors.Join(err, fmt.Errorf("%s is %q, want a whole number from %d", name, text, least))
		}
		return n
	}
	number := func(name, text string, least float64) time.Duration {
		x, bad := strconv.ParseFloat(text, 64)
		if bad != nil || !(x >= least && x < 1e9) {
			err = errors.Join(err, fmt.Errorf("%s is %q, want a time from %g", name, text, least))
		}
		return time.Duration(x * 1e3) // of a thousandth
	}
	if args[1] != "private" && args[1] != "alloc" {
		err = fmt.Errorf("MEMORY is %q, want private or alloc", args[1])
	}
	a = arguments{
		ranks: whole("RANKS", args[0], 1), alloc: args[1] == "alloc", library: args[2], entry: args[3],
		budget: 1000 * number("BUDGET_MS", args[4], 0.001), maxCalls: int64(whole("MAX_CALLS", args[5], 1)),
		compute: number("COMPUTE_US", args[6], 0),
	}
	for _, text := range args[7:] {
		a.sizes = append(a.sizes, whole("BYTES", text, 0))
	}
	return a, err
}
