//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// goccl bench measures the ranks of a launcher, over shared memory as programs get it, or over MPI.
func TestBench(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		goccl := build(t, "cmd/goccl")
		for _, over := range []string{"shm", "mpi"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := exec.CommandContext(ctx, m.launcher, append(slices.Clone(m.args), "-n", "3", goccl, "bench",
				"all_reduce", "barrier", "--transport", over, "-b", "64", "-e", "64K", "-f", "1024", "--time", "20ms")...)
			c.Env = append(os.Environ(), "GOCCL_TIMEOUT=30s")
			_, err := c.StdinPipe() // which must not end before the ranks: mpiexec would die of it
			require.NoError(t, err)
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "all_reduce of float32 by sum, in place, 3 ranks over "+over)
			require.Contains(t, string(out), "all elements are right")
			require.Contains(t, string(out), "barrier, 3 ranks over "+over)
		}
	})
}
