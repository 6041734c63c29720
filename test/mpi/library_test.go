//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Random programs of the library's own collectives, on groups that overlap, give the right results.
func TestRandomProgramsOfLibrary(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		for seed, n := range []int{2, 3, 4, 8} {
			t.Run(fmt.Sprint("ranks=", n), func(t *testing.T) {
				m.passes(t, n, "program", "TEST_GOCCL_SEED="+strconv.Itoa(10+seed), algorithmsVariable+"=mpi mpi mpi direct")
			})
		}
	})
}

// What the library lacks is refused before data moves, on all ranks, and the group lives on.
func TestLibraryRefuses(t *testing.T) {
	each(t, func(t *testing.T, m mpi) { m.passes(t, 2, "refuses") })
}

var leftmost = ccl.NewOp("leftmost", false, func(dst, a, _ []int64) { copy(dst, a) })

func refuses() error {
	return inGroup(func(context.Context, int) error {
		by := dist.WithCallAlgorithm("mpi")
		x := []half.Float16{half.NewFloat16(1)}
		for says, err := range map[string]error{
			"MPI has no arithmetic for float16":                           dist.AllReduce(x, dist.Sum, by),
			"operation leftmost does not commute":                         dist.AllReduce([]int64{1}, leftmost, by),
			"some MPI libraries compare unsigned integers as signed ones": dist.AllReduce([]uint8{1}, dist.Max, by),
			"some MPI libraries saturate sums of 8 and 16 bits":           dist.AllReduce([]uint8{1}, dist.Sum, by),
		} {
			if !errors.Is(err, dist.ErrNotImplemented) || !strings.Contains(err.Error(), says) {
				return fmt.Errorf("%v, want %s", err, says)
			}
		}
		if err := dist.Broadcast(x, 0, by); err != nil {
			return fmt.Errorf("halves can be moved: %w", err)
		}
		return sum(by)
	})
}

// A rank that dies after all have entered a call, while the others are in the library, is the launcher's business: it ends the job.
func TestDeathInLibrary(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		dir := t.TempDir()
		out, err := m.start(t, 3, "inside", insideVariables(t, dir)...)
		failed, ok := errors.AsType[*exec.ExitError](err)
		require.True(t, ok, "%v: %s", err, out)
		require.Positive(t, failed.ExitCode(), "it ended by itself: %s", out)
		requireInLibrary(t, dir)
		awaitEnd(t, dir)
	})
}

// If the launcher lets survivors live, they stay in the library until the launcher is ended.
func TestSurvivorsInLibrary(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		if m.survivors == nil {
			return // TestDeathInLibrary
		}
		dir := t.TempDir()
		self, err := os.Executable()
		require.NoError(t, err)
		c := exec.CommandContext(t.Context(), m.launcher, append(append(m.args[:len(m.args):len(m.args)], m.survivors...), "-n", "3", self)...)
		c.Env = append(append(os.Environ(), partVariable+"=inside", "GOCCL_TRANSPORT=mpi", "GOCCL_TIMEOUT=1s"), insideVariables(t, dir)...)
		require.NoError(t, c.Start())
		for gone := false; !gone; gone = isThere(dir, "inside-0") && isThere(dir, "inside-2") && isThere(dir, "inside-1") && !lives(t, dir, "inside-1") {
			time.Sleep(10 * time.Millisecond)
		}
		require.NoError(t, c.Process.Signal(unix.SIGTERM))
		require.Error(t, c.Wait())
		requireInLibrary(t, dir)
		awaitEnd(t, dir)
	})
}

// insideVariables returns the variables of a part that notes in a directory.
func insideVariables(t *testing.T, dir string) []string {
	t.Helper()
	file := filepath.Join(dir, "ccl.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nalgorithms:\n  direct: {module: direct}\n  dying: {module: dying}\nrules:\n  - {algorithm: direct}\n"), 0o600))
	return []string{notesVariable + "=" + dir, "GOCCL_CONFIG=" + file}
}

// requireInLibrary requires that no survivor's call has returned.
func requireInLibrary(t *testing.T, dir string) {
	t.Helper()
	for _, rank := range []string{"0", "2"} {
		require.FileExists(t, filepath.Join(dir, "inside-"+rank))
		require.NoFileExists(t, filepath.Join(dir, "returned-"+rank))
	}
}

// awaitEnd waits until none of the ranks lives.
func awaitEnd(t *testing.T, dir string) {
	t.Helper()
	for rank := range 3 {
		for lives(t, dir, "inside-"+strconv.Itoa(rank)) {
			require.NoError(t, t.Context().Err())
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func isThere(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// lives reports whether the process lives that has noted its id.
func lives(t *testing.T, dir, name string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// inside: rank 1 dies where the others call the library.
func inside() error {
	return dist.Spawn(func(_ context.Context, rank int) error {
		if err := join(); err != nil {
			return err
		}
		err := sum(dist.WithCallAlgorithm("dying"))
		return errors.Join(err, note("returned-"+strconv.Itoa(rank), fmt.Sprint(err)))
	})
}

func init() {
	ccl.Register(&ccl.Algorithm{Name: "dying", Doc: "rank 1 dies", Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {Doc: "MPI_Allreduce of the others", Native: true, Cost: func(ccl.Shape) ccl.Cost { return ccl.Cost{} }, Run: runDying},
	}})
}

func runDying(c *ccl.Call) error {
	if err := note("inside-"+strconv.Itoa(c.Rank()), strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	if c.Rank() == 1 {
		dir := os.Getenv(notesVariable)
		for !isThere(dir, "inside-0") || !isThere(dir, "inside-2") { // until the others are on their way
			time.Sleep(time.Millisecond)
		}
		return unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	mpi := ccl.DefaultRegistry()["mpi"]
	return mpi.Kernels[ccl.CollAllReduce].Run(c)
}
