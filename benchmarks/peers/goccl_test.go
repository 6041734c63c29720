package main

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

func TestGocclIsLaunched(t *testing.T) {
	bin := t.TempDir()
	script(t, bin, "go", `[ "$1 $2 $4 $5" = "build -o `+gocclProgram+` `+gocclLauncher+`" ] && : > "$3/built"`)
	t.Setenv("PATH", bin)
	w := workplace{dir: t.TempDir()}
	entries, err := setUpGoccl(t.Context(), w)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(w.dir, "built"))

	program, launcher := filepath.Join(w.dir, "goccl_allreduce"), filepath.Join(w.dir, "goccl")
	for i, c := range []table.Contestant{goroutines, ours, alloc} {
		require.Equal(t, c, table.Contestant{Library: "goccl", Entry: entries[i].name})
	}
	require.Len(t, entries, 3)
	require.Equal(t, child{args: []string{program, "3", "private"}}, entries[0].launch(3))
	run := []string{launcher, "run", "-n", "3", "--no-prefix", program, "3"}
	require.Equal(t, child{args: append(slices.Clone(run), "private")}, entries[1].launch(3))
	require.Equal(t, child{args: append(slices.Clone(run), "alloc")}, entries[2].launch(3))
}

func TestGocclIsNotBuilt(t *testing.T) {
	bin := t.TempDir()
	script(t, bin, "go", "echo no such module >&2; exit 1")
	t.Setenv("PATH", bin)
	_, err := setUpGoccl(t.Context(), workplace{dir: t.TempDir()})
	require.ErrorContains(t, err, "goccl's own program was not built: go build -o ")
	require.ErrorContains(t, err, "no such module")
}

// goccl's own program is built and run as in a comparison.
func TestGocclIsMeasured(t *testing.T) {
	entries, err := setUpGoccl(t.Context(), workplace{dir: t.TempDir()})
	require.NoError(t, err)
	o := options{sizes: []int{0, 4, 20004}, budget: time.Millisecond, compute: 10 * time.Microsecond, limit: time.Minute}
	for _, e := range entries {
		t.Run(e.name, func(t *testing.T) {
			if e.name != goroutines.Entry && runtime.GOOS != "linux" {
				t.Skip("ranks as processes need Linux")
			}

			rows, err := e.measure(t.Context(), "goccl", 3, o)
			require.NoError(t, err)
			require.Len(t, rows, len(o.sizes))

			for i, r := range rows {
				require.Equal(t, table.Contestant{Library: "goccl", Entry: e.name}, r.Contestant)
				require.Equal(t, 3, r.Ranks)
				require.Equal(t, o.sizes[i], r.Bytes)
				require.Positive(t, r.LeastUS)
				require.EqualValues(t, 10, r.ComputeUS)
				require.Zero(t, r.Errors)
			}
		})
	}
}
