package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
	"github.com/goccl/goccl/benchmarks/peers/programs/internal/program"
	"github.com/goccl/goccl/dist"
)

func main() { program.Main(command) }

// command runs the program and returns the exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	a, err := parseArguments(args)
	if err != nil {
		fmt.Fprintf(stderr, "goccl_ddp: %v\nusage: goccl_ddp RANKS FORM LIBRARY ENTRY BUDGET_MS MAX_STEPS NAME ELEMENTS...\n", err)
		return 2
	}
	return program.Run(ctx, "goccl_ddp", a.ranks, stdout, stderr, a.measure)
}

// measure makes the steps of a rank, and writes the table.
func (a arguments) measure(rank int, out io.Writer) error {
	s, err := a.newSteps(rank)
	if err != nil {
		return err
	}
	rounds, err := program.FitRounds(a.budget, a.maxSteps, func(i int) error {
		_, _, err := s.round(i)
		s.countErrors(i)
		return err
	}, program.ShareFirst)
	if err != nil {
		return err
	}

	quiet, whole := make([]time.Duration, rounds), make([]time.Duration, rounds)
	wrongElements := []int64{0}
	for i := range quiet {
		if quiet[i], whole[i], err = s.round(i); err != nil {
			return err
		}
		wrongElements[0] += s.countErrors(i)
	}

	err = errors.Join(dist.AllReduce(quiet, dist.Max), dist.AllReduce(whole, dist.Max), dist.AllReduce(wrongElements, dist.Sum))
	if err != nil {
		return err
	}
	cores, err := program.CoresOfRanks()
	if err != nil {
		return err
	}

	// What communication adds to a step.
	bytes := 0
	for _, n := range a.elements {
		bytes += 4 * n
	}
	for i := range whole {
		whole[i] = max(0, whole[i]-quiet[i])
	}
	row := table.Measured(table.Contestant{Library: a.library, Entry: a.entry}, a.ranks, bytes, cores, whole)
	row.Workload, row.Errors = a.name, int(wrongElements[0])
	return errors.Join(table.Write(out, []table.Row{row}), s.reducer.Close())
}
