//go:build linux && (amd64 || arm64)

package mpi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The example trains the same weights on all ranks over MPI, built without cgo or with it.
func TestDDP(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		for _, cgo := range []string{"0", "1"} {
			t.Run("CGO_ENABLED="+cgo, func(t *testing.T) {
				if cgo == "1" {
					needsCompiler(t)
				}
				ddp := buildBy(t, cgo, "examples/ddp", "build")
				for _, n := range []int{2, 3, 4, 8} {
					if cgo == "1" && n != 4 && !*whole {
						continue // the ranks make the same calls
					}
					out, err := m.of(ddp, "-epochs", "1").start(t, n, "")
					require.NoError(t, err, "%s", out)
					require.Contains(t, out, " over mpi ")
					require.Contains(t, out, fmt.Sprintf("weights: equal bit by bit on all %d ranks", n))
				}
			})
		}
	})
}

// With logical shards the weights are those of goroutines, on any number of ranks.
func TestLogicalShards(t *testing.T) {
	ddp := build(t, "examples/ddp")
	flags := []string{"-shards", "8", "-epochs", "1"}
	sum := regexp.MustCompile(`sha256 (\w+)`)
	out, err := exec.CommandContext(t.Context(), ddp, append(flags, "-ranks", "2", "-plot", "")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	want := sum.FindSubmatch(out)
	require.NotNil(t, want, "%s", out)
	each(t, func(t *testing.T, m mpi) {
		for _, n := range []int{2, 3, 4} {
			out, err := m.of(append([]string{ddp}, flags...)...).start(t, n, "")
			require.NoError(t, err, "%s", out)
			require.Contains(t, out, " over mpi ")
			require.Contains(t, out, string(want[0]), "%d ranks", n)
		}
	})
}

// With logical shards trainings whose ranks become more and fewer at each checkpoint have the weights of their definition,
// on one node and on stand-ins for nodes.
func TestLogicalShardsResume(t *testing.T) {
	tests := buildBy(t, "0", "ddp", "test", "-c")
	each(t, func(t *testing.T, m mpi) {
		dir, step := t.TempDir(), 0
		variables := func() []string {
			step++
			return []string{"TEST_DDP_WORK=shards resumed", fmt.Sprintf("TEST_DDP_SHARDS=%d %d %s", step-1, step, dir)}
		}
		for _, n := range []int{5, 2, 8, 3, 7, 4, 6} {
			out, err := m.of(tests).start(t, n, "", variables()...)
			require.NoError(t, err, "%s", out)
			for rank := range n {
				require.NoError(t, os.Remove(filepath.Join(dir, strconv.Itoa(rank))), "%d ranks: %s", n, out)
			}
		}
		for _, n := range []int{3, 2} {
			t.Run(fmt.Sprint("nodes=", n), func(t *testing.T) {
				c, perNode := newCluster(t, n), 4-n
				j := c.start(t, m.of(tests), perNode, "", variables()...)
				for rank := range n * perNode {
					right := func() bool { return os.Remove(filepath.Join(dir, strconv.Itoa(rank))) == nil }
					require.Eventually(t, right, time.Minute, 10*time.Millisecond, "rank %d", rank)
				}
				j.interrupt(t) // see isRight
				_ = j.wait(t)
			})
		}
	})
}

// needsCompiler skips a test that builds with cgo, if there is no C compiler.
func needsCompiler(t *testing.T) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "env", "CC")
	c.Env = append(os.Environ(), "CGO_ENABLED=1")
	cc, err := c.Output()
	require.NoError(t, err)
	name, _, _ := strings.Cut(strings.TrimSpace(string(cc)), " ")
	if _, err := exec.LookPath(name); err != nil {
		require.NotEqual(t, "required", os.Getenv(requiredVariable), "there is no C compiler")
		t.Skip("there is no C compiler: install gcc or clang")
	}
}
