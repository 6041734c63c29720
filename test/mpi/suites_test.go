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
	"regexp"
	"slices"
	"strconv"
	"strings"
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
// number of ranks, or another one if a check has none of that.
func TestTransport(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		program := buildBy(t, "0", "transport/mpi", "test", "-c")
		t.Run("node", func(t *testing.T) {
			const ranks = 8
			selected := []selection{{"[A-M]", "2"}, {"Context", "3"}}
			if m.name == "MPICH" {
				selected = []selection{ // without Random and Sync, which take a third of the time
					{"[N-QT-Z]", "3"}, {"R[^a]", "3"}, {"S[^y]", "3"}, {"P2P/Withdraw", "2"}, {"Withdraw/Stuck", "2"}, {"Timeout/Warn", "2"}, {"Timeout/Endless", "2"},
				}
			}
			if *whole {
				selected = []selection{{"[A-Z]", fmt.Sprintf("[1-%d]", ranks)}}
			}
			s := newSuite(t, program, filepath.Join(t.TempDir(), "socket"), ranks, selected)
			m.of(program).passes(t, ranks, "", s.variable)
			s.passes(t)
		})
		t.Run("nodes=2x2", func(t *testing.T) {
			c := newCluster(t, 2)
			selected := []selection{ // without P2P/Withdraw, whose 2 ranks would be on one node
				{"Messages", "4"}, {"Staging", "4"}, {"Group", "[34]"}, {"P2P/([^W]|Wa)", "[34]"},
			}
			if *whole {
				selected = []selection{{"[A-Z]", "[1-4]"}}
			}
			s := newSuite(t, program, filepath.Join(c.place, "socket"), 4, selected)
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

// selection is some of the suite's checks on groups of some sizes: patterns of the beginnings of their names, part by part, and of
// numbers of ranks.
type selection struct{ checks, ranks string }

// run returns the go command's pattern of the selection. The names of some checks have two parts.
func (s selection) run() string {
	const test = "^TestTransportCarried$"
	checks := strings.ReplaceAll("/"+s.checks, "/", "/^")
	return fmt.Sprintf("%[1]s%[2]s/^ranks=%[3]s$|%[1]s%[2]s/^[A-Z]/^ranks=%[3]s$", test, checks, s.ranks)
}

// notRun returns what the suite has not run, by what it said: checks that passed on no number of ranks, and selections of nothing.
func notRun(said string, selected []selection) (what []string) {
	passed := regexp.MustCompile(`(?m)^ *--- PASS: TestTransportCarried/(.*?)(/ranks=\d+)? \(`).FindAllStringSubmatch(said, -1)
	ran := make(map[string]bool)
	for _, p := range passed {
		ran[p[1]] = ran[p[1]] || p[2] != ""
	}
	for check, somewhere := range ran {
		if !somewhere {
			what = append(what, "check "+check)
		}
	}
	for _, s := range selected {
		name := regexp.MustCompile("^" + s.checks + ".*/ranks=" + s.ranks + "$")
		if !slices.ContainsFunc(passed, func(p []string) bool { return name.MatchString(p[1] + p[2]) }) {
			what = append(what, fmt.Sprintf("checks %s on %s ranks", s.checks, s.ranks))
		}
	}
	slices.Sort(what)
	return what
}

// Checks that a pattern selects for no number of ranks are missing, and so is what a pattern selects that names no check.
func TestNotRun(t *testing.T) {
	const said = `=== RUN   TestTransportCarried/Sync/ranks=2
--- PASS: TestTransportCarried (0.01s)
    --- PASS: TestTransportCarried/Context (0.00s)
    --- PASS: TestTransportCarried/P2P/Order (0.01s)
        --- PASS: TestTransportCarried/P2P/Order/ranks=2 (0.01s)
    --- PASS: TestTransportCarried/P2P/Withdraw (0.00s)
    --- PASS: TestTransportCarried/View (0.00s)
        --- SKIP: TestTransportCarried/View/ranks=2 (0.00s)
`
	require.Equal(t, []string{
		"check Context", "check P2P/Withdraw", "check View", "checks P2P on 3 ranks", "checks Sync on 2 ranks",
	}, notRun(said, []selection{{"P2P", "[23]"}, {"P2P", "2"}, {"P2P", "3"}, {"P2P/Order", "2"}, {"Sync", "2"}, {"[A-Z]", "[1-8]"}}))
	require.Equal(t, []string{"checks [A-Z] on [1-8] ranks"}, notRun("testing: warning: no tests to run\nPASS\n", []selection{{"[A-Z]", "[1-8]"}}))
}

// suite is the process in which the suite of transports runs.
type suite struct {
	variable string // for its carriers
	selected []selection
	process  *exec.Cmd
	ended    chan struct{}
	said     []byte
	err      error
}

// newSuite starts some of the suite's checks. They wait for carriers at a socket.
func newSuite(t *testing.T, program, socket string, carriers int, selected []selection) *suite {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	file, err := l.File()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), jobTime())
	s := &suite{variable: "TEST_GOCCL_SOCKET=" + socket, selected: selected, ended: make(chan struct{})}
	var run []string
	for _, some := range selected {
		run = append(run, some.run())
	}
	s.process = exec.CommandContext(ctx, program, "-test.v", "-test.timeout=0", "-test.run="+strings.Join(run, "|"))
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

// passes waits until the suite has passed, and has run all that was selected.
func (s *suite) passes(t *testing.T) {
	t.Helper()
	<-s.ended
	require.NoError(t, s.err)
	require.Empty(t, notRun(string(s.said), s.selected))
}
