package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// arguments is the command line.
type arguments struct {
	ranks                int
	copies               bool
	library, entry, name string
	budget               time.Duration
	maxSteps             int64
	elements             []int // of each gradient
}

func parseArguments(args []string) (a arguments, err error) {
	if len(args) < 8 {
		return a, fmt.Errorf("%d arguments, want 8 or more", len(args))
	}
	whole := func(name, text string) int {
		n, bad := strconv.Atoi(text)
		if bad != nil || n < 1 {
			err = errors.Join(err, fmt.Errorf("%s is %q, want a whole number from 1", name, text))
		}
		return n
	}
	if args[1] != "views" && args[1] != "copies" {
		err = fmt.Errorf("FORM is %q, want views or copies", args[1])
	}
	ms, bad := strconv.ParseFloat(args[4], 64)
	if bad != nil || !(ms >= 0.001 && ms < 1e9) {
		err = errors.Join(err, fmt.Errorf("BUDGET_MS is %q, want a time from 0.001", args[4]))
	}
	a = arguments{
		ranks: whole("RANKS", args[0]), copies: args[1] == "copies", library: args[2], entry: args[3], name: args[6],
		budget: time.Duration(ms * 1e6), maxSteps: int64(whole("MAX_STEPS", args[5])),
	}
	for _, text := range args[7:] {
		a.elements = append(a.elements, whole("ELEMENTS", text))
	}
	return a, err
}
