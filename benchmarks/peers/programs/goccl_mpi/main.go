package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/benchmarks/peers/internal/table"
	"github.com/goccl/goccl/benchmarks/peers/programs/internal/program"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	_ "github.com/goccl/goccl/transport/mpi"
)

func main() { os.Exit(command(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }

// command runs the program and returns the exit status.
func command(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	a, err := parseArguments(args, getenv)
	if err != nil {
		fmt.Fprintf(stderr, "goccl_mpi: %v\nusage, under mpirun: goccl_mpi LIBRARY BUDGET_MS MAX_CALLS BYTES...\n", err)
		return 2
	}
	if err := a.run(stdout); err != nil {
		fmt.Fprintf(stderr, "goccl_mpi: %v\n", err)
		return 1
	}
	return 0
}

// run connects the ranks, and measures. Rank 0 writes the table.
func (a arguments) run(out io.Writer) error {
	ctx := context.Background()
	mpi, err := transport.Lookup("mpi")
	if err != nil {
		return err
	}
	eps, err := mpi.Join(ctx, &transport.Job{Size: a.ranks, Launched: true, Rank: a.rank, Attempt: 1, Origin: "the launcher says something else"})
	if err != nil {
		return err
	}

	library, ok := eps[0].(transport.Collectives)
	if !ok {
		return errors.New("the transport has no collectives")
	}
	comm, err := ccl.New(ctx, eps[0])
	if err != nil {
		return err
	}

	s := &subject{arguments: a, comm: comm, collectives: library, element: make([]byte, 4), ctx: ctx}
	rows, err := s.measureAll()
	if err != nil {
		return err
	}
	if a.rank == 0 {
		if err := table.Write(out, rows); err != nil {
			return err
		}
	}

	if err := comm.Close(); err != nil {
		return err
	}
	return mpi.Leave(ctx)
}

// arguments are the command line, and what the launcher says.
type arguments struct {
	rank, ranks int
	library     string
	budget      time.Duration // for a size
	maxCalls    int64
	sizes       []int // bytes
}

func parseArguments(args []string, getenv func(string) string) (arguments, error) {
	if len(args) < 4 {
		return arguments{}, fmt.Errorf("%d arguments, want 4 or more", len(args))
	}
	rank, ranks := "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"
	if getenv(rank) == "" {
		rank, ranks = "PMI_RANK", "PMI_SIZE"
	}

	var words program.Arguments
	a := arguments{
		rank: words.Whole(rank, getenv(rank), 0), ranks: words.Whole(ranks, getenv(ranks), 2), library: args[0],
		budget:   words.Time("BUDGET_MS", args[1], 0.001, time.Millisecond),
		maxCalls: int64(words.Whole("MAX_CALLS", args[2], 1)),
		sizes:    words.WholeNumbers("BYTES", args[3:], 4),
	}
	return a, words.Err
}

// subject is what is measured on one rank.
type subject struct {
	arguments
	ctx         context.Context
	comm        *ccl.Communicator
	collectives transport.Collectives
	element     []byte // synchronises the ranks
	x           []float32
	bytes       []byte // x
}

// entries are what is measured, by name.
var entries = []struct {
	name string
	do   func(s *subject) error
}{
	{"call", func(s *subject) error { return s.collectives.AllReduce(s.bytes, transport.Float32, transport.Sum) }},
	{"mpi", func(s *subject) error {
		return ccl.AllReduce(s.ctx, s.comm, s.x, s.x, ccl.Sum, ccl.WithAlgorithm("mpi"))
	}},
	check: {"check", func(s *subject) error { return s.comm.Barrier(s.ctx) }},
}

// check is the entry whose operation is a barrier, the last one.
const check = 2

func (s *subject) measureAll() (rows []table.Row, err error) {
	measure := func(entry, bytes int) {
		if err == nil {
			var row table.Row
			row, err = s.measure(entry, bytes)
			rows = append(rows, row)
		}
	}
	measure(check, 0)

	for _, bytes := range s.sizes {
		for e := range check {
			measure(e, bytes)
		}
	}
	return rows, err
}

// measure times an entry and returns its row, the same on all ranks.
func (s *subject) measure(entry, bytes int) (row table.Row, err error) {
	s.resize(max(1, bytes/4))
	calls, err := program.FitRounds(s.budget, s.maxCalls, func(i int) error {
		_, err := s.round(entry, i)
		return err
	}, func(rounds []int64) error { return ccl.Broadcast(s.ctx, s.comm, rounds, 0) })
	if err != nil {
		return row, err
	}

	times := make([]time.Duration, calls)
	wrongElements := []int64{0}
	for i := range times {
		if times[i], err = s.round(entry, i); err != nil {
			return row, err
		}
		wrongElements[0] += s.countErrors(entry, i)
	}

	err = errors.Join(ccl.AllReduce(s.ctx, s.comm, times, times, ccl.Max),
		ccl.AllReduce(s.ctx, s.comm, wrongElements, wrongElements, ccl.Sum))
	row = table.Measured(table.Contestant{Library: s.library, Entry: entries[entry].name}, s.ranks, bytes, "", times)
	row.Errors = int(wrongElements[0])
	return row, err
}

// round fills the vector with the inputs of round i, and returns how long an entry takes on this
// rank, which begins it with all others.
func (s *subject) round(entry, i int) (time.Duration, error) {
	for j := range s.x {
		s.x[j] = float32(s.rank + (i+j)&7)
	}
	synced := errors.Join(s.synchronise(), s.synchronise())
	start := time.Now()
	err := entries[entry].do(s)
	took := time.Since(start)
	return took, errors.Join(synced, err, s.synchronise())
}

func (s *subject) synchronise() error {
	return s.collectives.AllReduce(s.element, transport.Float32, transport.Sum)
}

// countErrors returns how many elements differ from the result of round i.
func (s *subject) countErrors(entry, i int) (n int64) {
	for j, got := range s.x {
		want := float32(s.ranks*(s.ranks-1)/2 + s.ranks*((i+j)&7))
		if entry == check {
			want = float32(s.rank + (i+j)&7) // a barrier does not change it
		}
		if got != want {
			n++
		}
	}
	return n
}
