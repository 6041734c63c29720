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
	return program.Run(ctx, "goccl_ddp", a.Ranks, stdout, stderr, a.measure)
}

type arguments struct {
	program.Line
	name     string // of the workload, for the row
	elements []int  // the length of each gradient
}

func parseArguments(args []string) (a arguments, err error) {
	if len(args) < 8 {
		return a, fmt.Errorf("%d arguments, want 8 or more", len(args))
	}
	var words program.Arguments
	a.Line = words.Line(args, "FORM", "MAX_STEPS", "views", "copies")
	a.name, a.elements = args[6], words.WholeNumbers("ELEMENTS", args[7:], 1)
	return a, words.Err
}

// measure makes the steps of a rank, and writes the table.
func (a arguments) measure(rank int, out io.Writer) error {
	s, err := a.newSteps(rank)
	if err != nil {
		return err
	}
	rounds, err := program.FitRounds(a.Budget, a.MaxRounds, func(i int) error {
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
	row := table.Measured(a.Contestant, a.Ranks, bytes, cores, whole)
	row.Workload, row.Errors = a.name, int(wrongElements[0])
	return errors.Join(table.Write(out, []table.Row{row}), s.reducer.Close())
}
