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
		fmt.Fprintf(stderr, "goccl_allreduce: %v\nusage: goccl_allreduce RANKS MEMORY LIBRARY ENTRY BUDGET_MS MAX_CALLS COMPUTE_US BYTES...\n", err)
		return 2
	}
	return program.Run(ctx, "goccl_allreduce", a.Ranks, stdout, stderr, a.measureAll)
}

type arguments struct {
	program.Line
	compute time.Duration // before each call
	sizes   []int         // bytes; 0 is a barrier
}

func parseArguments(args []string) (a arguments, err error) {
	if len(args) < 8 {
		return a, fmt.Errorf("%d arguments, want 8 or more", len(args))
	}
	var words program.Arguments
	a.Line = words.Line(args, "MEMORY", "MAX_CALLS", "private", "alloc", "sockets")
	a.compute = words.Time("COMPUTE_US", args[6], 0, time.Microsecond)
	a.sizes = words.WholeNumbers("BYTES", args[7:], 0)
	return a, words.Err
}

// measureAll measures all sizes on a rank, and writes the table.
func (a arguments) measureAll(rank int, out io.Writer) error {
	v, err := a.newVector(rank)
	if err != nil {
		return err
	}
	cores, err := program.CoresOfRanks()
	if err != nil {
		return err
	}

	var rows []table.Row
	for _, bytes := range a.sizes {
		row, err := a.measure(v, bytes, cores)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	return table.Write(out, rows)
}

// measure times the operation on that many bytes and returns a row, the same on all ranks.
func (a arguments) measure(v *vector, bytes int, cores string) (row table.Row, err error) {
	v.resize(bytes / 4)
	calls, err := program.FitRounds(a.Budget, a.MaxRounds, func(i int) error {
		_, err := v.round(i)
		v.countErrors(i)
		return err
	}, program.ShareFirst)
	if err != nil {
		return row, err
	}

	times := make([]time.Duration, calls)
	wrongElements := []int64{0}
	for i := range times {
		if times[i], err = v.round(i); err != nil {
			return row, err
		}
		wrongElements[0] += v.countErrors(i)
	}
	if err := errors.Join(dist.AllReduce(times, dist.Max), dist.AllReduce(wrongElements, dist.Sum)); err != nil {
		return row, err
	}

	row = table.Measured(a.Contestant, a.Ranks, bytes, cores, times)
	row.ComputeUS, row.Errors = float64(a.compute.Nanoseconds())/1e3, int(wrongElements[0])
	return row, nil
}
