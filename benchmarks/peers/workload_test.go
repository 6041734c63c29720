package main

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

// measureSteps measures a small network on each entry, and checks the rows.
func measureSteps(t *testing.T, library string, entries []entry) {
	t.Helper()
	o := options{workloads: []string{"lenet5"}, budget: time.Millisecond, limit: time.Minute}
	require.Len(t, entries, 2)
	for _, e := range entries {
		rows, err := e.measureWorkloads(t.Context(), library, 2, o)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, table.Contestant{Library: library, Entry: e.name}, rows[0].Contestant)
		require.Equal(t, "lenet5", subjectOf(rows[0]))
		require.Equal(t, 4*61_706, rows[0].Bytes)
		require.Zero(t, rows[0].Errors)
	}
}

func TestGocclStepsAreMeasured(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	own, err := setUpGocclSteps(t.Context(), workplace{dir: t.TempDir()})
	require.NoError(t, err)
	require.Contains(t, []string{own[0].name, own[1].name}, ourSteps.Entry)
	measureSteps(t, ourSteps.Library, own)
}

func TestTorchStepsAreMeasured(t *testing.T) {
	_, peers, err := setUpTorchSteps(t.Context(), workplace{dir: t.TempDir()})
	if err != nil {
		t.Skip(err)
	}
	measureSteps(t, "gloo", peers)
}

func TestTorchIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, errs strings.Builder
	require.Equal(t, 1, command([]string{"-workloads", "lenet5", "-ranks", "2"}, &out, &errs))
	require.Contains(t, errs.String(), "torch is missing: no python3 in PATH has torch\n    on Debian: apt-get install python3-torch\n")
	require.Contains(t, errs.String(), "there is no peer to compare with")
}

// A table of steps has the names of workloads, and multiples of goccl's copies.
func TestTableOfSteps(t *testing.T) {
	var text strings.Builder
	of := func(library, entry string, p50 float64) table.Row {
		return table.Row{Contestant: table.Contestant{Library: library, Entry: entry}, Workload: "vgg16", Ranks: 2, Bytes: 8, P50US: p50, BestUS: p50, Passes: 1, Calls: 5}
	}
	rows := mergePasses([]table.Row{of("goccl", "views", 50), of("goccl", "copies", 100), of("gloo", "DDP copies", 700)})
	writeTable(&text, rows, ourSteps)
	require.Contains(t, text.String(), "| ranks | workload |")
	require.Regexp(t, `\| +2 \| +vgg16 \| +50.0 \| +100 \| +700 \(7.0x\) \|`, text.String())

	text.Reset()
	require.NoError(t, table.Write(&text, rows))
	require.Contains(t, text.String(), "gloo,ddp_vgg16,DDP copies,float32,avg,2,8,")
	again, err := table.Parse(text.String())
	require.NoError(t, err)
	require.Equal(t, "vgg16", again[0].Workload)
}
