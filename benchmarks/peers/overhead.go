package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const gocclMPI = "github.com/goccl/goccl/benchmarks/peers/programs/goccl_mpi"

// The entries of a library in a comparison of overheads. The first two are mpi_allreduce.c, the others goccl_mpi.
const (
	single    = "C"
	threads   = "C with threads" // with MPI_THREAD_MULTIPLE, as goccl starts MPI
	direct    = "call"           // MPI_Allreduce called from Go
	check     = "check"          // a barrier of goccl
	algorithm = "mpi"            // an all-reduce of goccl by the algorithm mpi
)

// threadsVariable makes mpi_allreduce.c ask for MPI_THREAD_MULTIPLE.
const threadsVariable = "PEERS_THREADS=multiple"

// twoProcessors is for ranks that the launcher binds to a core. With one processor the Go runtime looks every 20 us
// after a call that blocks it, which interrupts a long all-reduce: 1 MiB between 2 ranks took 230 us instead of 139.
const twoProcessors = "GOMAXPROCS=2"

// runOverhead compares MPI's calls, and goccl's all-reduces by the algorithm mpi, with the same library called from C.
func runOverhead(ctx context.Context, o options, w workplace, about string, stdout, stderr io.Writer) error {
	if err := w.build(ctx, gocclMPI); err != nil {
		return err
	}
	o.sizes = slices.DeleteFunc(o.sizes, func(bytes int) bool { return bytes == 0 }) // barriers are measured in any case
	var turns []turn
	var versions []string
	for _, l := range libraries {
		if l.name == "gloo" || len(o.only) > 0 && !slices.Contains(o.only, l.name) {
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
		turns = append(turns, overheadTurns(l.name, entries[0].launch, filepath.Join(w.dir, "goccl_mpi"))...)
	}
	if len(turns) == 0 {
		return errors.New("there is no MPI to compare with")
	}
	fmt.Fprintf(stdout, "%s\n%s; %d passes\nall-reduce, float32, sum, in place: median of the slowest rank in microseconds\n\n", about, strings.Join(versions, ", "), o.passes)
	rows, failed := takeTurns(ctx, o, turns, stderr)
	if ctx.Err() != nil {
		return failed
	}
	rows = merge(rows)
	writeOverhead(stdout, rows)
	return errors.Join(failed, wrongResults(rows),
		save("peers-overhead.csv", func(file io.Writer) error { return writeRows(file, rows) }))
}

// overheadTurns are the turns of a library: its program in C, which launch starts, twice, and then goccl's.
func overheadTurns(library string, launch func(ranks int) child, program string) []turn {
	withThreads := func(ranks int) child {
		c := launch(ranks)
		c.env = append(slices.Clone(c.env), threadsVariable)
		return c
	}
	own := entry{algorithm, func(ranks int) child {
		c := launch(ranks)
		c.args = append(slices.Clone(c.args[:len(c.args)-1]), program) // in place of the one in C
		c.env = append(slices.Clone(c.env), twoProcessors)
		return c
	}}
	return append(turnsOf(library, []entry{{single, launch}, {threads, withThreads}}),
		turn{contestant{library, algorithm}, func(ctx context.Context, ranks int, o options) ([]row, error) {
			args := []string{library, o.budgetMS(), strconv.Itoa(maxCalls)}
			for _, bytes := range o.sizes {
				args = append(args, strconv.Itoa(bytes))
			}
			return own.run(ctx, library, ranks, o, args, o.sizes)
		}})
}

// writeOverhead writes a line for each library and size of which all entries were measured.
func writeOverhead(w io.Writer, rows []row) {
	lines := [][]string{{"library", "ranks", "bytes", single, threads, "called from Go", "difference", "goccl's check", "goccl by mpi", "/ (check + C with threads)"}}
	for _, r := range rows {
		if r.entry != algorithm {
			continue
		}
		var p50 [4]float64
		all := true
		for i, e := range []string{single, threads, direct, check} {
			bytes := r.bytes
			if e == check {
				bytes = 0
			}
			of, ok := find(rows, contestant{r.library, e}, r.ranks, bytes)
			p50[i], all = of.p50, all && ok
		}
		if !all {
			continue
		}
		lines = append(lines, []string{
			libraries[slices.Index(libraryNames(), r.library)].title, strconv.Itoa(r.ranks), r.subject(), formatTime(p50[0]), formatTime(p50[1]), formatTime(p50[2]),
			fmt.Sprintf("%+.2f", p50[2]-p50[1]), formatTime(p50[3]), formatTime(r.p50), fmt.Sprintf("%.2f", r.p50/(p50[1]+p50[3])),
		})
	}
	writeMarkdown(w, lines)
}
