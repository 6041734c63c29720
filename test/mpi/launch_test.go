//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mpi is an installed MPI.
type mpi struct {
	name, launcher string
	args           []string
	survivors      []string // further arguments with which the launcher lets ranks live when another one has died; nil: it cannot
}

var installed = []mpi{
	{"Open MPI", "mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe"}, []string{"--mca", "orte_enable_recovery", "1"}},
	{"MPICH", "mpiexec.mpich", nil, nil},
}

// each runs a test under each MPI that is installed.
func each(t *testing.T, test func(t *testing.T, m mpi)) {
	for _, m := range installed {
		t.Run(m.name, func(t *testing.T) {
			if _, err := exec.LookPath(m.launcher); err != nil {
				require.NotEqual(t, "required", os.Getenv("TEST_GOCCL_MPI"), "%s is not installed", m.launcher)
				t.Skip(m.launcher + " is not installed")
			}
			test(t, m)
		})
	}
}

// start runs a part on n ranks and returns what they print.
func (m mpi) start(t *testing.T, n int, part string, env ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, m.launcher, append(m.args, "-n", fmt.Sprint(n), self)...)
	c.Env = append(append(os.Environ(), partVariable+"="+part, "GOCCL_TRANSPORT=mpi", "GOCCL_TIMEOUT=30s"), env...)
	_, err = c.StdinPipe() // which must not end before the ranks: mpiexec would die of it
	require.NoError(t, err)
	out, err := c.CombinedOutput()
	return string(out), err
}

// passes runs a part on n ranks, which must pass on all, and say nothing else.
func (m mpi) passes(t *testing.T, n int, part string, env ...string) {
	t.Helper()
	out, err := m.start(t, n, part, env...)
	require.NoError(t, err, "%s", out)
	require.Equal(t, strings.Repeat("passed\n", n), out)
}
