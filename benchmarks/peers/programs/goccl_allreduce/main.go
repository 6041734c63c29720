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

const warmUp, minCalls = 3, 5 // rounds; the former are not counted

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
		fmt.Fprintf(stderr, "goccl_allreduce: %v\nusage: goccl_allreduce RANKS MEMORY LIBRARY ENTRY BUDGET_MS MAX_CALLS COMPUTE_US BYTES...\n", err)
		return 2
	}
	worker := func(_ context.Context, rank int) error { return a.measureAll(rank, stdout) }
	if err := dist.Spawn(worker, dist.WithRanks(a.ranks), dist.WithSpawnContext(ctx)); err != nil {
		fmt.Fprintf(stderr, "goccl_allreduce: %v\n", err)
		return 1
	}
	return 0
}

// measureAll is the worker of a rank. Rank 0 writes the table.
func (a arguments) measureAll(rank int, out io.Writer) error {
	if err := dist.InitProcessGroup("ccl", dist.WithConfig(config.Default())); err != nil {
		return err
	}
	if rank != 0 {
		out = io.Discard
	}
	fmt.Fprintln(out, "library,collective,entry,dtype,op,ranks,bytes,in_place,consume,cores,compute_us,passes,calls,"+
		"p50_us,best_us,p90_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,errors")
	v, err := a.newVector(rank)
	if err != nil {
		return err
	}
	places, err := cores.OfRanks()
	if err != nil {
		return err
	}
	for _, bytes := range a.sizes {
		row, err := a.measure(v, bytes, places)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, row)
	}
	return dist.DestroyProcessGroup()
}

// measure times the operation on that many bytes and returns a row, the same on all ranks.
func (a arguments) measure(v *vector, bytes int, places string) (row string, err error) {
	v.resize(bytes / 4)
	calls, err := v.callsWithin(a.budget, a.maxCalls)
	if err != nil {
		return "", err
	}
	took := make([]time.Duration, calls)
	wrong := []int64{0}
	for i := range took {
		if took[i], err = v.round(i); err != nil {
			return "", err
		}
		wrong[0] += v.wrong(i)
	}
	if err := errors.Join(dist.AllReduce(took, dist.Max), dist.AllReduce(wrong, dist.Sum)); err != nil {
		return "", err
	}
	slices.Sort(took)
	us := func(i int) float64 { return float64(took[i].Nanoseconds()) / 1e3 }
	p50 := us(len(took) / 2)
	times := fmt.Sprintf("%q,%.0f,1,%d,%.3f,%.3f,%.3f,%.3f,%.3f", places, float64(a.compute.Nanoseconds())/1e3, calls,
		p50, p50, us(len(took)*9/10), us(len(took)*99/100), us(0))
	if bytes == 0 {
		return fmt.Sprintf("%s,barrier,%s,,,%d,0,,false,%s,,,,,0", a.library, a.entry, a.ranks, times), nil
	}
	algbw := float64(bytes) / p50 / 1e3 // bytes per us are MB/s
	busbw := algbw * 2 * float64(a.ranks-1) / float64(a.ranks)
	return fmt.Sprintf("%s,all_reduce,%s,float32,sum,%d,%d,true,false,%s,%.4f,%.4f,,,%d",
		a.library, a.entry, a.ranks, bytes, times, algbw, busbw, wrong[0]), nil
}
