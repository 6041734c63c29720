package main

import (
	"os"
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
