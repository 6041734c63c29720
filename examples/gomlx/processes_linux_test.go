package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program prints the same on processes of goccl run as on goroutines: losses, accuracy and the hash of the
// weights.
func TestSameBitsAsProcesses(t *testing.T) {
	bin := t.TempDir()
	build(t, ".", filepath.Join(bin, "gomlx"), ".")
	build(t, filepath.Join("..", ".."), filepath.Join(bin, "goccl"), "./cmd/goccl")
	for _, ranks := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("ranks=%d", ranks), func(t *testing.T) {
			goroutines := output(t, filepath.Join(bin, "gomlx"), "-epochs", "2", "-ranks", fmt.Sprint(ranks))
			processes := output(t, filepath.Join(bin, "goccl"), "run", "-n", fmt.Sprint(ranks), "--no-prefix", filepath.Join(bin, "gomlx"), "-epochs", "2")
			require.Contains(t, goroutines, "weights: equal bit by bit on all ranks")
			require.Equal(t, goroutines, processes)
		})
	}
}

// build builds a package of the module in a folder.
func build(t *testing.T, folder, program, source string) {
	t.Helper()
	out, err := exec.Command("go", "-C", folder, "build", "-o", program, source).CombinedOutput()
	require.NoError(t, err, string(out))
}

// output runs a program, which must succeed, and returns its standard output.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), "GOCCL_CONFIG=", "GOCCL_ALGORITHM=", "GOCCL_TRANSPORT=", "GOCCL_TIMEOUT=", "GOCCL_WORLD_SIZE=")
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.Output()
	require.NoError(t, err, complaints.String())
	return string(out)
}
