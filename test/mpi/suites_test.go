//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The conformance suites of kernels and transports run under the installed MPIs, in the test binaries of packages ccltest and
// transport/mpi: these are ranks of the launchers. They are built without cgo.

var whole = flag.Bool("whole", false, "make all calls of the conformance suites, on all numbers of ranks, instead of a sample")

// jobTime is how long a launcher may take.
func jobTime() time.Duration {
	if *whole {
		return 30 * time.Minute
	}
	return 2 * time.Minute
}

// kernelCalls is about how many calls each kernel makes on all ranks, three times as many as in a group of some of them.
const kernelCalls = 4

// kernels are the variables of ranks that make the calls of the suite of kernels.
func kernels(seed, levels int) []string {
	calls := kernelCalls
	if *whole {
		calls = 0
	}
	return []string{"TEST_GOCCL_CALLS=" + strconv.Itoa(calls), "TEST_GOCCL_SEED=" + strconv.Itoa(seed), "TEST_GOCCL_LEVELS=" + strconv.Itoa(levels)}
}

// All kernels give the results of the sequential definition, or reject a call with the reason.
func TestKernels(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		program := buildBy(t, "0", "ccl/ccltest", "test", "-c")
		for seed, n := range []int{2, 3, 4, 8} {
			t.Run(fmt.Sprint("ranks=", n), func(t *testing.T) {
				m.of(program).passes(t, n, "", kernels(seed+len(m.name), 1)...)
			})
		}
		t.Run("nodes=2x2", func(t *testing.T) {
			c := newCluster(t, 2)
			passes := c.passes
			if m.name == "MPICH" {
				passes = c.isRight // see TestNodes
			}
			passes(t, m.of(program), 2, "", kernels(len(m.name), 2)...)
		})
	})
}

// The transport passes its suite where an MPI library carries all packets: the suite runs in one process, and each of its ranks sends
// and receives by a process of its own, which a launcher has started. Unless the suite runs whole, each MPI has half of the checks, on one
// number of ranks.
func TestTransport(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		program := buildBy(t, "0", "transport/mpi", "test", "-c")
		t.Run("node", func(t *testing.T) {
			const ranks = 8
			checks, sizes := "[A-M]", "2"
			if m.name == "MPICH" {
				checks, sizes = "([N-QT-Z]|Re|St)", "3" // without Random and Sync, which take a third of the time
			}
			if *whole {
				checks, sizes = allChecks, fmt.Sprintf("[1-%d]", ranks)
			}
			s := newSuite(t, program, filepath.Join(t.TempDir(), "socket"), ranks, checks, sizes)
			m.of(program).passes(t, ranks, "", s.variable)
			s.passes(t)
		})
		t.Run("nodes=2x2", func(t *testing.T) {
			c := newCluster(t, 2)
			checks, sizes := messageChecks, "4"
			if *whole {
				checks, sizes = allChecks, "[1-4]"
			}
			s := newSuite(t, program, filepath.Join(c.place, "socket"), 4, checks, sizes)
			if m.name != "MPICH" {
				c.passes(t, m.of(program), 2, "", s.variable)
				s.passes(t)
				return
			}
			j := c.start(t, m.of(program), 2, "", s.variable)
			s.passes(t)
			j.interrupt(t) // see TestNodes
			_ = j.wait(t)
		})
	})
}

// Checks of the suite, as patterns of the beginnings of their names.
const (
	allChecks     = "[A-Z]"
	messageChecks = "(Messages|P2P|Group|Staging)"
)

// suite is the process in which the suite of transports runs.
type suite struct {
	variable string // for its carriers
	process  *exec.Cmd
	ended    chan struct{}
	said     []byte
	err      error
}

// newSuite starts the suite's checks on groups of these sizes, a pattern. They wait for carriers at a socket.
func newSuite(t *testing.T, program, socket string, carriers int, checks, sizes string) *suite {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	file, err := l.File()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime())
	s := &suite{variable: "TEST_GOCCL_SOCKET=" + socket, ended: make(chan struct{})}
	// The names of some checks have two parts.
	run := fmt.Sprintf("^TestTransportCarried$/^%[1]s/^ranks=%[2]s$|^TestTransportCarried$/^%[1]s/^[A-Z]/^ranks=%[2]s$", checks, sizes)
	s.process = exec.CommandContext(ctx, program, "-test.v", "-test.timeout=0", "-test.run="+run)
	s.process.Env = append(os.Environ(), fmt.Sprint("TEST_GOCCL_CARRIERS=", carriers))
	s.process.ExtraFiles = []*os.File{file}
	go func() {
		defer close(s.ended)
		s.said, s.err = s.process.CombinedOutput()
		assert.NoError(t, file.Close()) // only now: its end refuses carriers that come later
		assert.NoError(t, l.Close())
	}()
	t.Cleanup(func() {
		cancel()
		<-s.ended
		t.Logf("%s", s.said)
	})
	return s
}

// passes waits until the suite has passed.
func (s *suite) passes(t *testing.T) {
	t.Helper()
	<-s.ended
	require.NoError(t, s.err)
	require.Contains(t, string(s.said), "\n--- PASS: TestTransportCarried")
}
