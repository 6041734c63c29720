package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	_ "github.com/goccl/goccl/transport/mpi"
)

const warmUp, minCalls = 3, 5 // rounds; the former are not counted

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
	if a.rank != 0 {
		out = io.Discard
	}
	fmt.Fprintln(out, "library,collective,entry,dtype,op,ranks,bytes,in_place,consume,cores,compute_us,passes,calls,"+
		"p50_us,best_us,p90_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,errors")
	s := &subject{arguments: a, comm: comm, library: library, one: make([]byte, 4), ctx: ctx}
	if err := s.measureAll(out); err != nil {
		return err
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
	maxCalls    int
	sizes       []int // bytes
}

func parseArguments(args []string, getenv func(string) string) (a arguments, err error) {
	if len(args) < 4 {
		return a, fmt.Errorf("%d arguments, want 4 or more", len(args))
	}
	whole := func(name, text string, least int) int {
		n, bad := strconv.Atoi(text)
		if bad != nil || n < least {
			err = errors.Join(err, fmt.Errorf("%s is %q, want a whole number from %d", name, text, least))
		}
		return n
	}
	rank, ranks := "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"
	if getenv(rank) == "" {
		rank, ranks = "PMI_RANK", "PMI_SIZE"
	}
	a = arguments{rank: whole(rank, getenv(rank), 0), ranks: whole(ranks, getenv(ranks), 2), library: args[0], maxCalls: whole("MAX_CALLS", args[2], 1)}
	budget, bad := strconv.ParseFloat(args[1], 64)
	if a.budget = time.Duration(budget * float64(time.Millisecond)); bad != nil || a.budget <= 0 {
		err = errors.Join(err, fmt.Errorf("BUDGET_MS is %q, want a time", args[1]))
	}
	for _, text := range args[3:] {
		a.sizes = append(a.sizes, whole("BYTES", text, 4))
	}
	return a, err
}

// subject is what is measured on one rank.
type subject struct {
	arguments
	ctx     context.Context
	comm    *ccl.Communicator
	library transport.Collectives
	one     []byte // that ranks meet with
	x       []float32
	bytes   []byte // x
}

// entries are what is measured, by name.
var entries = []struct {
	name string
	do   func(s *subject) error
}{
	{"call", func(s *subject) error { return s.library.AllReduce(s.bytes, transport.Float32, transport.Sum) }},
	{"mpi", func(s *subject) error {
		return ccl.AllReduce(s.ctx, s.comm, s.x, s.x, ccl.Sum, ccl.WithAlgorithm("mpi"))
	}},
	check: {"check", func(s *subject) error { return s.comm.Barrier(s.ctx) }},
}

// check is the entry whose operation is a barrier, the last one.
const check = 2

func (s *subject) measureAll(out io.Writer) error {
	s.resize(1)
	if err := s.print(out, check); err != nil {
		return err
	}
	for _, bytes := range s.sizes {
		s.resize(bytes / 4)
		for e := range check {
			if err := s.print(out, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// print measures an entry and prints its row.
func (s *subject) print(out io.Writer, entry int) error {
	row, err := s.measure(entry)
	if err == nil {
		fmt.Fprintln(out, row)
	}
	return err
}

// measure times an entry and returns a row, the same on all ranks.
func (s *subject) measure(entry int) (row string, err error) {
	calls, err := s.callsWithin(entry)
	if err != nil {
		return "", err
	}
	took := make([]time.Duration, calls)
	wrong := []int64{0}
	for i := range took {
		if took[i], err = s.round(entry, i); err != nil {
			return "", err
		}
		wrong[0] += s.wrong(entry, i)
	}
	if err := errors.Join(ccl.AllReduce(s.ctx, s.comm, took, took, ccl.Max), ccl.AllReduce(s.ctx, s.comm, wrong, wrong, ccl.Sum)); err != nil {
		return "", err
	}
	return s.row(entry, took, wrong[0]), nil
}

// round fills the vector with the inputs of round i, runs an entry once when all ranks have met, and returns how long it took on
// this rank.
func (s *subject) round(entry, i int) (time.Duration, error) {
	for j := range s.x {
		s.x[j] = float32(s.rank + (i+j)&7)
	}
	met := errors.Join(s.meet(), s.meet())
	start := time.Now()
	err := entries[entry].do(s)
	took := time.Since(start)
	return took, errors.Join(met, err, s.meet())
}

func (s *subject) meet() error { return s.library.AllReduce(s.one, transport.Float32, transport.Sum) }

// wrong returns how many elements differ from the result of round i.
func (s *subject) wrong(entry, i int) (n int64) {
	for j, got := range s.x {
		want := float32(s.ranks*(s.ranks-1)/2 + s.ranks*((i+j)&7))
		if entry == check {
			want = float32(s.rank + (i+j)&7) // it stays
		}
		if got != want {
			n++
		}
	}
	return n
}

// callsWithin returns how many rounds fit into the budget, at least minCalls and at most maxCalls. All ranks return the same
// number.
func (s *subject) callsWithin(entry int) (int, error) {
	fastest := s.budget
	for i := range warmUp {
		start := time.Now()
		if _, err := s.round(entry, i); err != nil {
			return 0, err
		}
		fastest = min(fastest, time.Since(start))
	}
	calls := []int{min(max(minCalls, int(s.budget/fastest)), s.maxCalls)}
	err := ccl.Broadcast(s.ctx, s.comm, calls, 0)
	return calls[0], err
}

// row returns a row of the table.
func (s *subject) row(entry int, took []time.Duration, wrong int64) string {
	slices.Sort(took)
	us := func(i int) float64 { return float64(took[i].Nanoseconds()) / 1e3 }
	p50 := us(len(took) / 2)
	times := fmt.Sprintf(",0,1,%d,%.3f,%.3f,%.3f,%.3f,%.3f", len(took), p50, p50, us(len(took)*9/10), us(len(took)*99/100), us(0))
	if entry == check {
		return fmt.Sprintf("%s,barrier,%s,,,%d,0,,false,%s,,,,,%d", s.arguments.library, entries[entry].name, s.ranks, times, wrong)
	}
	algbw := float64(len(s.bytes)) / p50 / 1e3
	return fmt.Sprintf("%s,all_reduce,%s,float32,sum,%d,%d,true,false,%s,%.4f,%.4f,,,%d",
		s.arguments.library, entries[entry].name, s.ranks, len(s.bytes), times, algbw, algbw*2*float64(s.ranks-1)/float64(s.ranks), wrong)
}
