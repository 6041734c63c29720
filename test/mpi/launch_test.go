//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requiredVariable is set to "required" where the tests must find what they need.
const requiredVariable = "TEST_GOCCL_MPI"

// mpi is an installed MPI.
type mpi struct {
	name, launcher string
	program        []string // that the ranks run, with its arguments; nil: this one
	args           []string
	survivors      []string                                             // further arguments with which the launcher lets ranks live when another one has died; nil: it cannot
	across         func(c *cluster, perNode int, env []string) []string // further arguments for ranks on nodes, with these variables
}

var installed = []mpi{
	{"Open MPI", "mpirun.openmpi", nil, []string{"--allow-run-as-root", "--oversubscribe"}, []string{"--mca", "orte_enable_recovery", "1"}, acrossOpenMPI},
	{"MPICH", "mpiexec.mpich", nil, nil, nil, acrossMPICH},
}

func acrossOpenMPI(c *cluster, perNode int, env []string) []string {
	hosts := make([]string, len(c.nodes))
	for i := range hosts {
		hosts[i] = fmt.Sprintf("%s:%d", nodeName(i+1), perNode)
	}
	args := []string{"-H", strings.Join(hosts, ","), "--mca", "plm_rsh_agent", c.agent(), "--mca", "pml", "ob1", "--mca", "btl", "vader,tcp,self",
		"--mca", "btl_tcp_if_include", subnet, "--mca", "oob_tcp_if_include", subnet}
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		args = append(args, "-x", name)
	}
	return args
}

// acrossMPICH names UCX's transports: by default it finds a way past the links.
func acrossMPICH(c *cluster, perNode int, _ []string) []string {
	hosts := make([]string, len(c.nodes))
	for i := range hosts {
		hosts[i] = nodeName(i + 1)
	}
	return []string{"-launcher", "ssh", "-launcher-exec", c.agent(), "-hosts", strings.Join(hosts, ","), "-ppn", fmt.Sprint(perNode),
		"-genv", "UCX_TLS", "tcp,self,posix"}
}

// each runs a test under each MPI.
func each(t *testing.T, test func(t *testing.T, m mpi)) {
	for _, m := range installed {
		m.run(t, test)
	}
}

// run runs a test under the MPI, if it is installed. With -short it does so only where the MPI is
// required: make mpi runs the test.
func (m mpi) run(t *testing.T, test func(t *testing.T, m mpi)) {
	t.Run(m.name, func(t *testing.T) {
		if testing.Short() && os.Getenv(requiredVariable) != "required" {
			t.Skip("make mpi runs it")
		}
		if _, err := exec.LookPath(m.launcher); err != nil {
			require.NotEqual(t, "required", os.Getenv(requiredVariable), "%s is not installed", m.launcher)
			t.Skip(m.launcher + " is not installed")
		}
		test(t, m)
	})
}

// line returns the launcher's arguments for n ranks, after those that are given.
func (m mpi) line(t *testing.T, n int, args ...string) []string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	if m.program != nil {
		return slices.Concat(args, []string{"-n", fmt.Sprint(n)}, m.program)
	}
	return slices.Concat(args, []string{"-n", fmt.Sprint(n), self})
}

// of returns m with ranks that run another program.
func (m mpi) of(program ...string) mpi {
	m.program = program
	return m
}

// start runs a part on n ranks and returns what they print.
func (m mpi) start(t *testing.T, n int, part string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime())
	defer cancel()
	c := exec.CommandContext(ctx, m.launcher, m.line(t, n, m.args...)...)
	c.Env = append(append(os.Environ(), partVariable+"="+part, "GOCCL_TRANSPORT=mpi", "GOCCL_TIMEOUT=30s"), env...)
	_, err := c.StdinPipe() // which must not end before the ranks: mpiexec would die of it
	require.NoError(t, err)
	out, err := c.CombinedOutput()
	return string(out), err
}

// passes runs a part on n ranks, which must pass on all, and say nothing else. A launcher may pass on what a rank says in pieces, with
// those of other ranks between them.
func (m mpi) passes(t *testing.T, n int, part string, env ...string) {
	t.Helper()
	out, err := m.start(t, n, part, env...)
	require.NoError(t, err, "%s", out)
	require.ElementsMatch(t, []byte(strings.Repeat("passed\n", n)), []byte(out), "%s", out)
}

// build builds a program of this module without cgo, and returns its file.
func build(t *testing.T, program string) (file string) {
	t.Helper()
	return buildBy(t, "0", program, "build")
}

// buildBy builds a program, or the tests of a package, by a go command with that CGO_ENABLED, and returns its file.
func buildBy(t *testing.T, cgo, program string, command ...string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), filepath.Base(program))
	c := exec.CommandContext(t.Context(), "go", append(command, "-o", file, "github.com/goccl/goccl/"+program)...)
	c.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}
