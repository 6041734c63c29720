package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

// merge returns medians of the passes, and sums of their calls and errors.
func TestMerge(t *testing.T) {
	a, b := table.Contestant{Library: "a", Entry: "x"}, table.Contestant{Library: "b", Entry: "x"}
	pass := func(c table.Contestant, ranks, bytes int, p50, p99, least float64, errors int, cores string) table.Row {
		return table.Row{Contestant: c, Ranks: ranks, Bytes: bytes, Cores: cores, ComputeUS: 20, Passes: 1, Calls: 10,
			P50US: p50, BestUS: p50, P90US: p99 / 2, P99US: p99, LeastUS: least, Errors: errors}
	}
	merged := mergePasses([]table.Row{
		pass(b, 4, 8, 1, 1, 1, 0, ""),
		pass(a, 4, 8, 5, 50, 4, 0, "0|1|0|1"), pass(a, 2, 8, 7, 7, 7, 0, "0|1"),
		pass(a, 4, 8, 900, 60, 3, 1, "0-1|0-1"), pass(a, 2, 8, 8, 8, 8, 0, "0|1"),
		pass(a, 4, 8, 6, 999, 5, 2, "0|1|0|1"), pass(a, 2, 0, 1, 1, 1, 0, "0|1"),
	})
	require.Equal(t, []table.Row{
		{Contestant: a, Ranks: 2, Bytes: 0, Cores: "0|1", ComputeUS: 20, Passes: 1, Calls: 10, P50US: 1, BestUS: 1, P90US: 0.5, P99US: 1, LeastUS: 1},
		{Contestant: a, Ranks: 2, Bytes: 8, Cores: "0|1", ComputeUS: 20, Passes: 2, Calls: 20, P50US: 7.5, BestUS: 7, P90US: 3.75, P99US: 7.5, LeastUS: 7},
		{Contestant: b, Ranks: 4, Bytes: 8, ComputeUS: 20, Passes: 1, Calls: 10, P50US: 1, BestUS: 1, P90US: 0.5, P99US: 1, LeastUS: 1},
		{Contestant: a, Ranks: 4, Bytes: 8, Cores: "0|1|0|1 or 0-1|0-1", ComputeUS: 20, Passes: 3, Calls: 30,
			P50US: 6, BestUS: 5, P90US: 30, P99US: 60, LeastUS: 3, Errors: 3},
	}, merged)
}

func TestTable(t *testing.T) {
	tuned := table.Contestant{Library: "openmpi", Entry: "tuned"}
	var text strings.Builder
	writeTable(&text, []table.Row{
		{Contestant: goroutines, Ranks: 2, P50US: 0.05},
		{Contestant: ours, Ranks: 2, P50US: 0.2},
		{Contestant: tuned, Ranks: 2, P50US: 0.1},
		{Contestant: ours, Ranks: 2, Bytes: 4096, P50US: 30.26},
		{Contestant: tuned, Ranks: 2, Bytes: 4096, P50US: 1234},
		{Contestant: ours, Ranks: 8, Bytes: 4096, P50US: 99.96},
		{Contestant: tuned, Ranks: 8, Bytes: 1 << 20, P50US: 5},
	}, ours)
	require.Equal(t, ""+
		"| ranks |   bytes | goccl, goroutines | goccl, processes | Open MPI, tuned |\n"+
		"| ----: | ------: | ----------------: | ---------------: | --------------: |\n"+
		"|     2 | barrier |              0.05 |             0.20 |    0.10 (0.50x) |\n"+
		"|     2 |   4 KiB |                   |             30.3 |      1234 (41x) |\n"+
		"|     8 |   4 KiB |                   |            100.0 |                 |\n"+
		"|     8 |   1 MiB |                   |                  |            5.00 |\n", text.String())
}

func TestCores(t *testing.T) {
	var text strings.Builder
	writeCores(&text, []table.Row{
		{Contestant: goroutines, Ranks: 2, Cores: "0-1|0-1"}, {Contestant: ours, Ranks: 2, Cores: "0|1"},
		{Contestant: goroutines, Ranks: 2, Bytes: 4, Cores: "0-1|0-1"}, {Contestant: alloc, Ranks: 2, Bytes: 4, Cores: "0|1"},
		{Contestant: goroutines, Ranks: 4},
	})
	require.Equal(t, "2 ranks on cores 0-1|0-1: goccl, goroutines\n"+
		"2 ranks on cores 0|1: goccl, processes; goccl, alloc\n"+
		"4 ranks on cores unknown: goccl, goroutines\n", text.String())
}
