//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/transport"
	plain "github.com/goccl/goccl/transport/mpi" // mpi is a type here
	"github.com/stretchr/testify/require"
)

// python starts nothing itself: it is Debian's, for which Debian has mpi4py.
const python = "/usr/bin/python3"

// needPython skips the test without mpi4py, or fails it.
func needPython(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(python, "-c", "import mpi4py").CombinedOutput(); err != nil {
		require.NotEqual(t, "required", os.Getenv(requiredVariable), "%s has no mpi4py: %s", python, out)
		t.Skip(python + " has no mpi4py: apt-get install python3-mpi4py")
	}
}

// TestMixedLanguages runs ranks in Go and Python, in either order, which make the same plain calls of MPI.
func TestMixedLanguages(t *testing.T) {
	needPython(t)
	self, err := os.Executable()
	require.NoError(t, err)
	script, err := filepath.Abs("testdata/mixed.py")
	require.NoError(t, err)
	installed[0].run(t, func(t *testing.T, m mpi) {
		for _, job := range []struct {
			ranks int
			line  []string
		}{
			{4, []string{"-n", "2", self, ":", "-n", "2", python, script}},
			{2, []string{"-n", "1", python, script, ":", "-n", "1", self}},
			{3, []string{"-n", "1", self, ":", "-n", "1", python, script, ":", "-n", "1", self}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			c := exec.CommandContext(ctx, m.launcher, append(slices.Clone(m.args), job.line...)...)
			c.Env = append(os.Environ(), partVariable+"=mixed")
			out, err := c.CombinedOutput()
			cancel()
			require.NoError(t, err, "%s", out)
			require.ElementsMatch(t, []byte(strings.Repeat("passed\n", job.ranks)), out, "%s", out) // see mpi.passes
		}
	})
}

// The example prints what its page says.
func TestMpi4pyExample(t *testing.T) {
	needPython(t)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "examples/mpi4py/README.md"))
	require.NoError(t, err)
	_, says, _ := strings.Cut(string(page), "```text\n")
	says, _, _ = strings.Cut(says, "```\n")
	installed[0].run(t, func(t *testing.T, m mpi) {
		fit := build(t, "examples/mpi4py")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, m.launcher, append(slices.Clone(m.args), "-n", "2", fit, ":", "-n", "2", python, "examples/mpi4py/fit.py")...)
		c.Dir = root
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.ElementsMatch(t, []byte(says), out, "%s", out) // see mpi.passes
	})
}

// mixed makes the same calls as testdata/mixed.py.
func mixed() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := plain.Unchecked(ctx)
	if err != nil {
		return err
	}
	for _, calls := range []func(*plain.UncheckedComm) error{
		mixedOf[int8], mixedOf[uint8], mixedOf[int16], mixedOf[uint16], mixedOf[int32], mixedOf[uint32], mixedOf[int], mixedOf[uint64], mixedOf[float32], mixedOf[float64],
	} {
		if err := calls(c); err != nil {
			return err
		}
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	return c.Close(ctx)
}

type number interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int | uint64 | float32 | float64
}

func mixedOf[T number](c *plain.UncheckedComm) error {
	rank, size := T(c.Rank()), T(c.Size())
	mine, out := []T{rank + 1, 2, rank}, make([]T, 3)
	if err := errors.Join(plain.UncheckedAllReduce(c, mine, out, plain.UncheckedSum),
		equal("AllReduce", out, []T{size * (size + 1) / 2, 2 * size, size * (size - 1) / 2})); err != nil {
		return err
	}
	if err := errors.Join(plain.UncheckedAllReduce(c, mine, mine, plain.UncheckedMax), equal("AllReduce in place", mine, []T{size, 2, size - 1})); err != nil {
		return err
	}
	data := []T{rank, rank, rank, rank}
	if err := errors.Join(plain.UncheckedBroadcast(c, data, 1), equal("Broadcast", data, []T{1, 1, 1, 1})); err != nil {
		return err
	}
	all, want := make([]T, 2*c.Size()), []T{}
	for r := range c.Size() {
		want = append(want, T(r), 7)
	}
	return errors.Join(plain.UncheckedAllGather(c, []T{rank, 7}, all), equal("AllGather", all, want))
}

func equal[T comparable](name string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: %v, want %v", name, got, want)
	}
	return nil
}

// The plain calls are the same under both families, and mistakes that are seen are errors.
func TestUnchecked(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		m.passes(t, 3, "mixed")
		m.passes(t, 3, "unchecked")
	})
}

func unchecked() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := plain.Unchecked(ctx)
	if err != nil {
		return err
	}
	type myInt int64
	// The same calls in the order of the operations.
	for op, want := range []myInt{1 + 2 + 3, 1 * 2 * 3, 1, 3, 1 & 2 & 3, 1 | 2 | 3, 1 ^ 2 ^ 3} {
		v := []myInt{myInt(c.Rank() + 1)}
		if err := errors.Join(plain.UncheckedAllReduce(c, v, v, plain.UncheckedOp(op)), equal(fmt.Sprint("operation ", op), v, []myInt{want})); err != nil {
			return err
		}
	}
	z := []complex64{complex(float32(c.Rank()), 1)}
	if err := errors.Join(plain.UncheckedAllReduce(c, z, z, plain.UncheckedSum), equal("complex", z, []complex64{3 + 3i})); err != nil {
		return err
	}
	all := make([]int16, 2*c.Size())
	mine := all[2*c.Rank():][:2]
	mine[0], mine[1] = int16(c.Rank()), -1
	if err := errors.Join(plain.UncheckedAllGather(c, mine, all), equal("AllGather in place", all, []int16{0, -1, 1, -1, 2, -1}),
		plain.UncheckedAllReduce(c, []int8{}, []int8{}, plain.UncheckedSum)); err != nil {
		return err
	}
	for text, err := range map[string]error{
		"send has 1 elements and recv 2":                        plain.UncheckedAllReduce(c, []int8{1}, []int8{1, 2}, plain.UncheckedSum),
		"operation 7 does not exist":                            plain.UncheckedAllReduce(c, []int8{1}, []int8{1}, 7),
		"recv has 2 elements, and 3 ranks of 1 elements need 3": plain.UncheckedAllGather(c, []int8{1}, []int8{1, 2}),
		"UncheckedBroadcast: rank 3 does not exist":             plain.UncheckedBroadcast(c, []int8{1}, 3),
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("%q: %v", text, err)
		}
	}
	if err := errors.Join(c.Close(ctx), c.Close(ctx)); err != nil {
		return err
	}
	if err := c.Barrier(); err != transport.ErrClosed {
		return fmt.Errorf("after Close: %v", err)
	}
	if _, err := plain.Unchecked(ctx); err == nil || !strings.Contains(err.Error(), "MPI does not start twice in a process") {
		return fmt.Errorf("again: %v", err)
	}
	return nil
}

// Beside a group of package dist that MPI connects, dist ends MPI.
func TestUncheckedBesideGroup(t *testing.T) {
	each(t, func(t *testing.T, m mpi) { m.passes(t, 2, "beside") })
}

func beside() error {
	var last *plain.UncheckedComm
	err := inGroup(func(ctx context.Context, _ int) error {
		c, err := plain.Unchecked(ctx)
		if err != nil {
			return err
		}
		if last, err = plain.Unchecked(ctx); err != nil {
			return err
		}
		v := []float32{1}
		return errors.Join(plain.UncheckedAllReduce(c, v, v, plain.UncheckedSum), equal("AllReduce", v, []float32{2}), c.Close(ctx), sum(), dist.Barrier())
	})
	if err != nil {
		return err
	}
	if err := last.Barrier(); err != transport.ErrClosed {
		return fmt.Errorf("after Spawn: %v", err)
	}
	return nil
}
