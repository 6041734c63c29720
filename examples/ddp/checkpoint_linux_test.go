package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A training that goes on from checkpoints ends with the weights of one that was not interrupted,
// and one that was complete says the same again.
func TestContinues(t *testing.T) {
	train := func(epochs, dir string) []string {
		var out, errs strings.Builder
		status := command([]string{"-ranks", "2", "-batch", "64", "-plot", "", "-epochs", epochs, "-checkpoint", dir}, &out, &errs)
		require.Zero(t, status, errs.String())
		lines := learned.FindAllString(out.String(), -1)
		return lines[len(lines)-2:] // the weights and the accuracy
	}
	want := train("3", t.TempDir())
	dir := t.TempDir()
	require.NotEqual(t, want, train("1", dir))
	require.Equal(t, want, train("3", dir))
	require.Equal(t, want, train("3", dir))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
}

// With logical shards a training that goes on with other numbers of ranks, more or fewer, ends with
// the weights of one that was not interrupted.
func TestContinuesOnOtherRanks(t *testing.T) {
	train := func(ranks, epochs, dir string) []string {
		var out, errs strings.Builder
		status := command([]string{"-ranks", ranks, "-shards", "12", "-plot", "", "-epochs", epochs, "-checkpoint", dir}, &out, &errs)
		require.Zero(t, status, errs.String())
		lines := regexp.MustCompile(`sha256 \w+|test accuracy: \S+`).FindAllString(out.String(), -1)
		return lines[len(lines)-2:]
	}
	want := train("2", "3", t.TempDir())
	dir := t.TempDir()
	require.NotEqual(t, want, train("4", "1", dir))
	require.NotEqual(t, want, train("12", "2", dir))
	require.Equal(t, want, train("3", "3", dir))
}
