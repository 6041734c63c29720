package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The faster MPI is another setting for each size, and another by the best passes; gloo is none.
func TestSummary(t *testing.T) {
	ompi, mpich := contestant{"openmpi", "tuned"}, contestant{"mpich", "default"}
	all := compare([]row{
		{contestant: ours, ranks: 2, compute: 250, p50: 2, best: 1},
		{contestant: contestant{"gloo", "default"}, ranks: 2, compute: 250, p50: 1, best: 1},
		{contestant: ompi, ranks: 2, compute: 250, p50: 4, best: 1.5},
		{contestant: goroutines, ranks: 2, bytes: 1024, p50: 5, best: 5},
		{contestant: ours, ranks: 2, bytes: 1024, p50: 10, best: 8},
		{contestant: alloc, ranks: 2, bytes: 1024, p50: 4, best: 4},
		{contestant: ompi, ranks: 2, bytes: 1024, p50: 9, best: 4},
		{contestant: mpich, ranks: 2, bytes: 1024, p50: 8, best: 6},
		{contestant: ours, ranks: 4, bytes: 1024, p50: 1, best: 1},
	})
	var text strings.Builder
	writeSummary(&text, all)
	require.Equal(t, ""+
		"| ranks |   bytes |      faster MPI | its median | x goroutines | x processes |     x alloc |\n"+
		"| ----: | ------: | --------------: | ---------: | -----------: | ----------: | ----------: |\n"+
		"|     2 | barrier | Open MPI, tuned |       4.00 |              | 2.00 (1.50) |             |\n"+
		"|     2 |   1 KiB |  MPICH, default |       8.00 |  1.60 (0.80) | 0.80 (0.50) | 2.00 (1.00) |\n", text.String())
	text.Reset()
	require.NoError(t, saveSummary(&text, all))
	require.Equal(t, summaryColumns+"\n"+
		"2,0,250,openmpi tuned,4.000,,2.000,,openmpi tuned,1.500,,1.500,\n"+
		"2,1024,0,mpich default,8.000,1.600,0.800,2.000,openmpi tuned,4.000,0.800,0.500,1.000\n", text.String())
}

func TestCores(t *testing.T) {
	var text strings.Builder
	writeCores(&text, []row{
		{contestant: goroutines, ranks: 2, cores: "0-1|0-1"}, {contestant: ours, ranks: 2, cores: "0|1"},
		{contestant: goroutines, ranks: 2, bytes: 4, cores: "0-1|0-1"}, {contestant: alloc, ranks: 2, bytes: 4, cores: "0|1"},
		{contestant: goroutines, ranks: 4},
	})
	require.Equal(t, "2 ranks on cores 0-1|0-1: goccl, goroutines\n"+
		"2 ranks on cores 0|1: goccl, processes; goccl, alloc\n"+
		"4 ranks on cores unknown: goccl, goroutines\n", text.String())
}
