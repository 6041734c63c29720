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
	library, entry string
	budget         time.Duration // for a size
	maxCalls       int64
	sizes          []int // bytes; 0 is a barrier
}

func parseArguments(args []string) (a arguments, err error) {
	if len(args) < 6 {
		return a, fmt.Errorf("%d arguments, want 6 or more", len(args))
	}
	whole := func(name, text string, least int) int {
		n, bad := strconv.Atoi(text)
		if bad != nil || n < least {
			err = errors.Join(err, fmt.Errorf("%s is %q, want a whole number from %d", name, text, least))
		}
		return n
	}
	ms, bad := strconv.ParseFloat(args[3], 64)
	if bad != nil || !(ms > 0 && ms < 1e9) {
		err = fmt.Errorf("BUDGET_MS is %q, want a time above 0", args[3])
	}
	a = arguments{
		ranks: whole("RANKS", args[0], 1), library: args[1], entry: args[2],
		budget: time.Duration(ms * 1e6), maxCalls: int64(whole("MAX_CALLS", args[4], 1)),
	}
	for _, text := range args[5:] {
		a.sizes = append(a.sizes, whole("BYTES", text, 0))
	}
	return a, err
}
