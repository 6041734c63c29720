package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// With logical shards the weights are the same on any number of ranks, and the report says so.
func TestLogicalShards(t *testing.T) {
	want := ""
	for _, ranks := range []string{"2", "3", "7"} {
		var out, errs strings.Builder
		require.Zero(t, command([]string{"-ranks", ranks, "-shards", "8", "-epochs", "1", "-plot", ""}, &out, &errs), errs.String())
		result := regexp.MustCompile(`weights: equal bit by bit on all \d ranks, and on 1 rank \(sha256 (\w+)`).FindStringSubmatch(out.String())
		require.NotNil(t, result, out.String())
		require.Contains(t, out.String(), "averaged by pairwise")
		if want == "" {
			want = result[1]
		}
		require.Equal(t, want, result[1], "%s ranks", ranks)
	}
	var out, errs strings.Builder
	require.Equal(t, 1, command([]string{"-ranks", "3", "-shards", "2", "-epochs", "1", "-plot", ""}, &out, &errs))
	require.Contains(t, errs.String(), "LogicalShards is 2 for 3 ranks")
}
