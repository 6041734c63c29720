package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() { os.Exit(command(os.Args[1:], os.Stdout, os.Stderr)) }

// command runs the program and returns the exit status.
func command(args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "peers: %v\npeers -h explains the flags\n", err)
		return 2
	}
	// Children do not get a terminal's interrupt: they have their own process groups.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "peers: %v\n", err)
		return 1
	}
	return 0
}

// run finds the peers, compares, and shows the results.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	w, remove, err := newWorkplace()
	if err != nil {
		return err
	}
	defer remove()
	about := machine()
	if len(o.workloads) > 0 {
		return runWorkloads(ctx, o, w, about, stdout, stderr)
	}
	if o.overhead {
		return runOverhead(ctx, o, w, about, stdout, stderr)
	}
	var peers []turn
	versions := []string{"goccl"}
	for _, l := range libraries {
		if len(o.only) > 0 && !slices.Contains(o.only, l.name) {
			continue
		}
		version, entries, err := l.setUp(ctx, w)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			fmt.Fprintf(stderr, "%s is missing: %v\n    on Debian: apt-get install %s\n", l.title, err, l.packages)
			continue
		}
		versions = append(versions, l.title+" "+version)
		peers = append(peers, turnsOf(l.name, entries)...)
	}
	if len(peers) == 0 {
		return errors.New("there is no peer to compare with")
	}
	own, err := setUpGoccl(ctx, w)
	if err != nil {
		return err
	}
	turns := append(turnsOf(ours.library, own), peers...)
	work := "ranks do not compute between calls"
	if o.compute > 0 {
		work = fmt.Sprintf("every rank computes for %v, 0.9 to 1.1 times that long, before each call", o.compute)
	}
	fmt.Fprintf(stdout, "%s\n%s\n%s; %d passes\nall-reduce, float32, sum, in place: median of the slowest rank in microseconds, and of peers how many times that of goccl's processes\n\n",
		about, strings.Join(versions, ", "), work, o.passes)

	rows, failed := takeTurns(ctx, o, turns, stderr)
	if ctx.Err() != nil {
		return failed
	}
	rows = merge(rows)
	comparisons := compare(rows)
	writeTable(stdout, rows, ours)
	fmt.Fprintln(stdout)
	writeCores(stdout, rows)
	if len(comparisons) > 0 {
		fmt.Fprint(stdout, "\nhow many times as long the faster MPI takes as goccl: medians over the passes (best passes)\n\n")
		writeSummary(stdout, comparisons)
	}
	failed = errors.Join(failed, wrongResults(rows),
		save("peers.csv", func(file io.Writer) error { return writeRows(file, rows) }),
		save("peers-summary.csv", func(file io.Writer) error { return saveSummary(file, comparisons) }))
	if slices.Max(o.sizes) == 0 {
		return failed // a barrier has no length for the logarithmic axis
	}
	return errors.Join(failed, save("peers.png", func(file io.Writer) error { return drawPicture(file, rows, about) }))
}

// turn is one turn of a contestant.
type turn struct {
	contestant
	measure func(ctx context.Context, ranks int, o options) ([]row, error)
}

// turnsOf are the turns of a library's entries.
func turnsOf(library string, entries []entry) (turns []turn) {
	for _, e := range entries {
		turns = append(turns, turn{contestant{library, e.name}, func(ctx context.Context, ranks int, o options) ([]row, error) {
			if len(o.workloads) > 0 {
				return e.measureWorkloads(ctx, library, ranks, o)
			}
			return e.measure(ctx, library, ranks, o)
		}})
	}
	return turns
}

// takeTurns measures all contestants in turns, pass by pass. A contestant that fails gets
// no more turns.
func takeTurns(ctx context.Context, o options, turns []turn, progress io.Writer) (rows []row, failed error) {
	out := map[contestant]bool{}
	for pass := range o.passes {
		for _, ranks := range o.ranks {
			for _, t := range turns {
				if out[t.contestant] {
					continue
				}
				fmt.Fprintf(progress, "pass %d of %d, %d ranks: %s\n", pass+1, o.passes, ranks, t.contestant)
				measured, err := t.measure(ctx, ranks, o)
				if ctx.Err() != nil {
					return rows, errors.Join(failed, context.Cause(ctx))
				}
				if err != nil {
					out[t.contestant] = true
					failed = errors.Join(failed, err)
					continue
				}
				rows = append(rows, measured...)
			}
		}
	}
	return rows, failed
}

// wrongResults names the contestants with wrong results.
func wrongResults(rows []row) error {
	var all []error
	for _, r := range rows {
		if r.errors > 0 {
			all = append(all, fmt.Errorf("%s, %d ranks, %s: %d elements of results are wrong", r.contestant, r.ranks, r.subject(), r.errors))
		}
	}
	return errors.Join(all...)
}

// newWorkplace creates the directories of the peers.
func newWorkplace() (w workplace, remove func(), err error) {
	w.dir, err = os.MkdirTemp("", "goccl-peers-")
	if err != nil {
		return w, nil, err
	}
	if memory, err := os.MkdirTemp("/dev/shm", "goccl-peers-"); err == nil {
		w.memory = memory
	}
	return w, func() {
		_ = os.RemoveAll(w.dir) // an error has no consequence
		if w.memory != "" {
			_ = os.RemoveAll(w.memory)
		}
	}, nil
}

func save(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
