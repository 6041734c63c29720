package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rows returns the fields of each row, by the length in bytes.
func rows(t *testing.T, table string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 0 {
			found[fields[0]] = fields
		}
	}
	return found
}

// The comparison verifies every result, for powers of two and others, and the
// rules of ccl.yaml choose what they say.
func TestRun(t *testing.T) {
	for _, ranks := range []int{2, 4, 7} {
		var out strings.Builder
		require.NoError(t, run(&out, ranks, "", 3))
		table := rows(t, out.String())
		require.Equal(t, []string{"bytes", "doubling", "ring", "tree", "direct", "blocked", "chosen"}, table["bytes"])
		short := "doubling"
		if ranks < 3 {
			short = "direct"
		}
		for bytes, chosen := range map[string]string{"4": short, "1KiB": short, "16KiB": "direct", "1MiB": "blocked"} {
			require.Len(t, table[bytes], 7)
			require.Equal(t, chosen, table[bytes][6], bytes)
		}
	}
}

// A configuration of one's own takes the place of the example's, and decides which
// entries there are.
func TestOwnConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	text := "version: 1\nalgorithms: {mine: {module: doubling}, tree: {module: tree}}\nrules: [{bytes: -1KiB, algorithm: mine}, {algorithm: tree}]\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	var out strings.Builder
	require.NoError(t, run(&out, 3, file, 1))
	table := rows(t, out.String())
	require.Equal(t, []string{"bytes", "mine", "tree", "chosen"}, table["bytes"])
	require.Equal(t, "mine", table["1KiB"][3])
	require.Equal(t, "tree", table["16KiB"][3])
	require.ErrorContains(t, run(&out, 3, "none.yaml", 1), "none.yaml: cannot read the configuration")
}
