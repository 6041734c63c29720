package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The comparison verifies every result, for powers of two and others, and the
// rules of ccl.yaml choose what they say.
func TestRun(t *testing.T) {
	for _, ranks := range []int{2, 4, 7} {
		var out strings.Builder
		require.NoError(t, run(&out, ranks, "", 3))
		lines := strings.Split(out.String(), "\n")
		require.Equal(t, append([]string{"bytes"}, entries...), strings.Fields(lines[2]))
		for i, bytes := range []string{"4", "1KiB", "16KiB", "1MiB"} {
			fields := strings.Fields(lines[3+i])
			require.Equal(t, bytes, fields[0])
			require.Len(t, fields, 1+len(entries))
		}
		short := "doubling, by examples/kernel/ccl.yaml:10: rule 1"
		if ranks < 3 {
			short = "direct, by examples/kernel/ccl.yaml:12: rule 3"
		}
		require.Contains(t, out.String(), `left to the rules:
  4: `+short+`
  1KiB: `+short+`
  16KiB: direct, by examples/kernel/ccl.yaml:12: rule 3
  1MiB: blocked, by examples/kernel/ccl.yaml:11: rule 2
`)
	}
}

// A configuration of one's own takes the place of the example's.
func TestOwnConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	text := strings.Replace(string(ownConfig), "algorithm: blocked", "algorithm: tree", 1)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	var out strings.Builder
	require.NoError(t, run(&out, 3, file, 1))
	require.Contains(t, out.String(), "1MiB: tree, by "+file+":11: rule 2")
	require.ErrorContains(t, run(&out, 3, "none.yaml", 1), "none.yaml: cannot read the configuration")
}
