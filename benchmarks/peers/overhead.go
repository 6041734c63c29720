package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

const gocclMPI = "github.com/goccl/goccl/benchmarks/peers/programs/goccl_mpi"

// The entries of a library in a comparison of overheads. The first two are mpi_allreduce.c, the
// others goccl_mpi.
const (
	single    = "C"
	threads   = "C with threads" // with MPI_THREAD_MULTIPLE, as goccl starts MPI
	direct    = "call"           // MPI_Allreduce called from Go
	check     = "check"          // a barrier of goccl
	algorithm = "mpi"            // an all-reduce of goccl by the algorithm mpi
)

// threadsVariable makes mpi_allreduce.c ask for MPI_THREAD_MULTIPLE.
const threadsVariable = "PEERS_THREADS=multiple"

// twoProcessors is for ranks that the launcher binds to a core. With one processor the Go runtime
// looks every 20 us after a call that blocks it, which interrupts a long all-reduce: 1 MiB between
// 2 ranks took 230 us instead of 139.
const twoProcessors = "GOMAXPROCS=2"

// setUpOverhead sets up the comparison of MPI's calls from Go, and of goccl's all-reduces by the
// algorithm mpi, with the same library called from C.
func setUpOverhead(ctx context.Context, o options, w workplace, stderr io.Writer) (comparison, error) {
	if err := w.build(ctx, gocclMPI); err != nil {
		return comparison{}, err
	}
	program := filepath.Join(w.dir, "goccl_mpi")
	mpis := slices.DeleteFunc(slices.Clone(libraries), func(l library) bool { return l.name == "gloo" })
	turns, versions, err := setUpPeers(ctx, o, w, stderr, mpis, func(l library, entries []entry) []turn {
		return overheadTurns(l, entries[0].launch, program)
	})
	return comparison{
		turns: turns,
		head: fmt.Sprintf("%s; %d passes\nall-reduce, float32, sum, in place: median of the slowest rank in microseconds",
			versions, o.passes),
		file: "peers-overhead.csv",
		show: writeOverhead,
	}, err
}

// overheadTurns are the turns of a library: its program in C, which launch starts, twice, and then
// goccl's.
func overheadTurns(l library, launch func(ranks int) child, program string) []turn {
	withThreads := func(ranks int) child {
		c := launch(ranks)
		c.env = append(slices.Clone(c.env), threadsVariable)
		return c
	}
	goccl := entry{algorithm, func(ranks int) child {
		c := launch(ranks)
		c.args = append(slices.Clone(c.args[:len(c.args)-1]), program) // in place of the one in C
		c.env = append(slices.Clone(c.env), twoProcessors)
		return c
	}}
	return append(turnsOf(l, []entry{{single, launch}, {threads, withThreads}}),
		turn{table.Contestant{Library: l.name, Entry: algorithm}, func(ctx context.Context, ranks int, o options) ([]table.Row, error) {
			args := []string{l.name, o.budgetMS(), strconv.Itoa(maxCalls)}
			for _, bytes := range o.sizes {
				args = append(args, strconv.Itoa(bytes))
			}
			return goccl.run(ctx, l.name, ranks, o, args, o.sizes)
		}})
}

// writeOverhead writes a line for each library and size of which all entries were measured.
func writeOverhead(w io.Writer, rows []table.Row) {
	lines := [][]string{{"library", "ranks", "bytes", single, threads, "called from Go", "difference", "goccl's check", "goccl by mpi", "/ (check + C with threads)"}}
	for _, r := range rows {
		if r.Entry != algorithm {
			continue
		}

		var p50 [4]float64
		all := true
		for i, e := range []string{single, threads, direct, check} {
			bytes := r.Bytes
			if e == check {
				bytes = 0
			}
			of, ok := findRow(rows, table.Contestant{Library: r.Library, Entry: e}, r.Ranks, bytes)
			p50[i], all = of.P50US, all && ok
		}

		if !all {
			continue
		}
		lines = append(lines, []string{
			libraries[slices.Index(libraryNames(), r.Library)].title, strconv.Itoa(r.Ranks), subjectOf(r), formatTime(p50[0]), formatTime(p50[1]), formatTime(p50[2]),
			fmt.Sprintf("%+.2f", p50[2]-p50[1]), formatTime(p50[3]), formatTime(r.P50US), fmt.Sprintf("%.2f", r.P50US/(p50[1]+p50[3])),
		})
	}
	writeMarkdown(w, lines)
}
