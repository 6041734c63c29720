package main

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGocclIsLaunched(t *testing.T) {
	bin := t.TempDir()
	script(t, bin, "go", `[ "$1 $2 $4" = "build -o `+gocclProgram+`" ] && : > "$3"`)
	t.Setenv("PATH", bin)
	w := workplace{dir: t.TempDir()}
	entries, err := setUpGoccl(t.Context(), w)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	program := filepath.Join(w.dir, "goccl_allreduce")
	require.FileExists(t, program)

	require.Equal(t, goroutines, contestant{"goccl", entries[0].name})
	require.Equal(t, job{{args: []string{program, "3"}}}, entries[0].launch(3))

	require.Equal(t, ours, contestant{"goccl", entries[1].name})
	names := map[string]bool{}
	for range 2 {
		launched := entries[1].launch(3)
		require.Len(t, launched, 3)
		name := launched[0].env[0]
		require.Regexp(t, `^GOCCL_SHM_NAME=/goccl-peers-\w+$`, name)
		for i, rank := range []string{"0", "1", "2"} {
			require.Equal(t, child{[]string{program, "3"},
				[]string{name, "GOCCL_SHM_RANK=" + rank, "GOCCL_SHM_SIZE=3"}}, launched[i])
		}
		names[name] = true
	}
	require.Len(t, names, 2, "every job has a name of its own")
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
	o := options{sizes: []int{0, 4, 20004}, budget: time.Millisecond, limit: time.Minute}
	for _, e := range entries {
		t.Run(e.name, func(t *testing.T) {
			if e.name == ours.entry && runtime.GOOS != "linux" {
				t.Skip("ranks as processes need Linux")
			}
			rows, err := e.measure(t.Context(), "goccl", 3, o)
			require.NoError(t, err)
			require.Len(t, rows, len(o.sizes))
			for i, r := range rows {
				require.Equal(t, contestant{"goccl", e.name}, r.contestant)
				require.Equal(t, 3, r.ranks)
				require.Equal(t, o.sizes[i], r.bytes)
				require.Positive(t, r.least)
				require.Zero(t, r.errors)
			}
		})
	}
}
