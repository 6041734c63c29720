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

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
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

// comparison is what a run compares, and how it shows the results.
type comparison struct {
	turns []turn
	head  string // printed before the measurements, after the machine
	file  string // gets the rows as CSV
	show  func(w io.Writer, rows []table.Row)
}

// run finds the peers, compares, and shows the results.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	w, remove, err := newWorkplace()
	if err != nil {
		return err
	}

	defer remove()
	machine := describeMachine()
	setUp := setUpSizes
	switch {
	case len(o.workloads) > 0:
		setUp = setUpWorkloads
	case o.overhead:
		setUp = setUpOverhead
	case len(o.nodes) > 0:
		setUp = setUpNodes
	}

	c, err := setUp(ctx, o, w, stderr)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}

	fmt.Fprintf(stdout, "%s\n%s\n\n", machine, c.head)
	rows, failed := takeTurns(ctx, o, c.turns, stderr)
	if ctx.Err() != nil {
		return failed
	}
	rows = mergePasses(rows)
	c.show(stdout, rows)
	return errors.Join(failed, checkResults(rows),
		save(c.file, func(file io.Writer) error { return table.Write(file, rows) }))
}

// setUpSizes sets up the comparison of all-reduces and barriers.
func setUpSizes(ctx context.Context, o options, w workplace, stderr io.Writer) (comparison, error) {
	peers, versions, err := setUpPeers(ctx, o, w, stderr, libraries, turnsOf)
	if err != nil {
		return comparison{}, err
	}
	entries, err := setUpGoccl(ctx, w)
	if err != nil {
		return comparison{}, err
	}

	work := "ranks do not compute between calls"
	if o.compute > 0 {
		work = fmt.Sprintf("every rank computes for %v, 0.9 to 1.1 times that long, before each call", o.compute)
	}
	return comparison{
		turns: append(turnsOf(library{name: ours.Library}, entries), peers...),
		head: fmt.Sprintf("goccl, %s\n%s; %d passes\nall-reduce, float32, sum, in place: median of the slowest rank in microseconds, "+
			"and of peers how many times that of goccl's processes", versions, work, o.passes),
		file: "peers.csv",
		show: func(w io.Writer, rows []table.Row) { writeTables(w, rows, ours) },
	}, nil
}

// setUpPeers returns the turns of the libraries that are installed, and their versions. It names
// those that are missing.
func setUpPeers(ctx context.Context, o options, w workplace, stderr io.Writer, among []library,
	turnsOf func(l library, entries []entry) []turn) (turns []turn, versions string, err error) {
	var titles []string
	for _, l := range among {
		if len(o.only) > 0 && !slices.Contains(o.only, l.name) {
			continue
		}
		version, entries, err := l.setUp(ctx, w)
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}

		if err != nil {
			fmt.Fprintf(stderr, "%s is missing: %v\n    on Debian: apt-get install %s\n", l.title, err, l.packages)
			continue
		}
		titles = append(titles, l.title+" "+version)
		turns = append(turns, turnsOf(l, entries)...)
	}

	if len(turns) == 0 {
		return nil, "", errors.New("there is no peer to compare with")
	}
	return turns, strings.Join(titles, ", "), nil
}

type turn struct {
	table.Contestant
	measure func(ctx context.Context, ranks int, o options) ([]table.Row, error)
}

func turnsOf(l library, entries []entry) (turns []turn) {
	for _, e := range entries {
		turns = append(turns, turn{table.Contestant{Library: l.name, Entry: e.name}, func(ctx context.Context, ranks int, o options) ([]table.Row, error) {
			if len(o.workloads) > 0 {
				return e.measureWorkloads(ctx, l.name, ranks, o)
			}
			return e.measure(ctx, l.name, ranks, o)
		}})
	}
	return turns
}

// takeTurns measures all contestants in turns, pass by pass. A contestant that fails gets
// no more turns.
func takeTurns(ctx context.Context, o options, turns []turn, progress io.Writer) (rows []table.Row, failed error) {
	out := map[table.Contestant]bool{}
	for pass := range o.passes {
		for _, ranks := range o.ranks {
			for _, t := range turns {
				if out[t.Contestant] {
					continue
				}
				fmt.Fprintf(progress, "pass %d of %d, %d ranks: %s\n", pass+1, o.passes, ranks, t.Contestant)
				measured, err := t.measure(ctx, ranks, o)
				if ctx.Err() != nil {
					return rows, errors.Join(failed, context.Cause(ctx))
				}

				if err != nil {
					out[t.Contestant] = true
					failed = errors.Join(failed, err)
					continue
				}
				rows = append(rows, measured...)
			}
		}
	}
	return rows, failed
}

// checkResults names the contestants with wrong results.
func checkResults(rows []table.Row) error {
	var all []error
	for _, r := range rows {
		if r.Errors > 0 {
			all = append(all, fmt.Errorf("%s, %d ranks, %s: %d elements of results are wrong", r.Contestant, r.Ranks, subjectOf(r), r.Errors))
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
