package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/goccl/goccl/benchmarks/peers/programs/internal/cores"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

const warmUp, minSteps = 3, 5 // rounds; the former are not counted

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// command runs the program and returns the exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a, err := parseArguments(args)
	if err != nil {
		fmt.Fprintf(stderr, "goccl_ddp: %v\nusage: goccl_ddp RANKS FORM LIBRARY ENTRY BUDGET_MS MAX_STEPS NAME ELEMENTS...\n", err)
		return 2
	}
	worker := func(_ context.Context, rank int) error { return a.measure(rank, stdout) }
	if err := dist.Spawn(worker, dist.WithRanks(a.ranks), dist.WithSpawnContext(ctx)); err != nil {
		fmt.Fprintf(stderr, "goccl_ddp: %v\n", err)
		return 1
	}
	return 0
}

// measure is the worker of a rank. Rank 0 writes the table.
func (a arguments) measure(rank int, out io.Writer) error {
	if err := dist.InitProcessGroup("ccl", dist.WithConfig(config.Default())); err != nil {
		return err
	}
	s, err := a.newSteps(rank)
	if err != nil {
		return err
	}
	rounds, err := s.roundsWithin(a.budget, a.maxSteps)
	if err != nil {
		return err
	}
	quiet, whole := make([]time.Duration, rounds), make([]time.Duration, rounds)
	wrong := []int64{0}
	for i := range quiet {
		if quiet[i], whole[i], err = s.round(i); err != nil {
			return err
		}
		wrong[0] += s.wrong(i)
	}
	err = errors.Join(dist.AllReduce(quiet, dist.Max), dist.AllReduce(whole, dist.Max), dist.AllReduce(wrong, dist.Sum))
	if err != nil {
		return err
	}
	places, err := cores.OfRanks()
	if err != nil {
		return err
	}
	if rank == 0 {
		for i := range whole {
			whole[i] = max(0, whole[i]-quiet[i])
		}
		fmt.Fprintln(out, "library,collective,entry,dtype,op,ranks,bytes,in_place,consume,cores,compute_us,passes,calls,"+
			"p50_us,best_us,p90_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,errors")
		fmt.Fprintln(out, a.row(whole, places, wrong[0]))
	}
	return errors.Join(s.reducer.Close(), dist.DestroyProcessGroup())
}

// row returns the row of the times that communication took, which it sorts.
func (a arguments) row(took []time.Duration, places string, wrong int64) string {
	bytes := 0
	for _, n := range a.elements {
		bytes += 4 * n
	}
	slices.Sort(took)
	us := func(i int) float64 { return float64(took[i].Nanoseconds()) / 1e3 }
	p50 := us(len(took) / 2)
	algbw := float64(bytes) / max(p50, 1e-3) / 1e3 // bytes per us are MB/s
	busbw := algbw * 2 * float64(a.ranks-1) / float64(a.ranks)
	return fmt.Sprintf("%s,ddp_%s,%s,float32,avg,%d,%d,true,false,%q,0,1,%d,%.3f,%.3f,%.3f,%.3f,%.3f,%.4f,%.4f,,,%d",
		a.library, a.name, a.entry, a.ranks, bytes, places, len(took), p50, p50, us(len(took)*9/10), us(len(took)*99/100), us(0), algbw, busbw, wrong)
}

// roundsWithin returns how many rounds fit into the budget, judged by the fastest of warmUp rounds, at least minSteps and at
// most most. All ranks return rank 0's number.
func (s *steps) roundsWithin(budget time.Duration, most int64) (int64, error) {
	fastest := budget
	for i := range warmUp {
		start := time.Now()
		if _, _, err := s.round(i); err != nil {
			return 0, err
		}
		s.wrong(i)
		fastest = min(fastest, time.Since(start))
	}
	rounds := []int64{min(max(minSteps, int64(budget/fastest)), most)}
	err := dist.Broadcast(rounds, 0)
	return rounds[0], err
}
