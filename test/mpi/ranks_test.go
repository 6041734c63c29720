//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/stress"
	_ "github.com/goccl/goccl/transport/mpi"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// partVariable names what a process that a launcher has started does instead of the tests.
const partVariable = "TEST_GOCCL_MPI_PART"

// Variables of parts: a directory for notes, the ranks that die, or stop if the next is set, and the algorithms of a program.
const (
	algorithmsVariable = "TEST_GOCCL_ALGORITHMS"

	notesVariable = "TEST_GOCCL_NOTES"
	dyingVariable = "TEST_GOCCL_DYING"
	stopsVariable = "TEST_GOCCL_STOPS"
)

// parts are what the ranks do.
var parts = map[string]func() error{
	"program": program, "again": again, "alone": alone, "dies": dies, "mismatch": mismatch, "missing": missing, "foreign": foreign,
	"volume": volume, "levels": levels, "carry": carry, "fall": fall, "head": head, "node": node, "error": starting,
	"mixed": mixed, "unchecked": unchecked, "beside": beside, "refuses": refuses, "inside": inside,
}

func TestMain(m *testing.M) {
	part := os.Getenv(partVariable)
	if part == "" {
		os.Exit(m.Run())
	}
	if err := parts[part](); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", part, err)
		os.Exit(1)
	}
	fmt.Println("passed")
}

// note writes a file for the test, if it has a directory for that.
func note(name, text string) error {
	dir := os.Getenv(notesVariable)
	if dir == "" {
		return nil
	}
	file := filepath.Join(dir, name)
	return errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file))
}

// right notes that a rank has done its part, before it leaves the job.
func right(rank int) error { return note(strconv.Itoa(rank), "right") }

// inGroup runs f on the launcher's rank with a default group.
func inGroup(f func(ctx context.Context, rank int) error) error {
	return dist.Spawn(func(ctx context.Context, rank int) error {
		if err := join(); err != nil {
			return err
		}
		err := f(ctx, rank)
		if err == nil {
			err = right(rank)
		}
		return errors.Join(err, dist.DestroyProcessGroup())
	})
}

// join makes the default group, and checks that MPI connects it.
func join() error {
	if err := dist.InitProcessGroup("ccl"); err != nil {
		return err
	}
	group, err := dist.Default()
	if err != nil {
		return err
	}
	if by := group.Communicator().Transport(); by != "mpi" {
		return fmt.Errorf("the transport is %s", by)
	}
	return nil
}

// Random programs of all calls, on groups that overlap, give the right results.
func TestRandomPrograms(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		for seed, n := range []int{2, 3, 4, 8} {
			t.Run(fmt.Sprint("ranks=", n), func(t *testing.T) {
				m.passes(t, n, "program", "TEST_GOCCL_SEED="+strconv.Itoa(seed))
			})
		}
	})
}

func program() error {
	seed, err := strconv.ParseUint(os.Getenv("TEST_GOCCL_SEED"), 10, 64)
	if err != nil {
		return err
	}
	algorithms := []string{"direct", "ring", "tree"}
	if own := os.Getenv(algorithmsVariable); own != "" {
		algorithms = strings.Fields(own)
	}
	return inGroup(func(ctx context.Context, _ int) error {
		group, err := dist.Default()
		if err != nil {
			return err
		}
		return stress.New(seed, stress.Options{
			Ranks: group.Size(), Events: 100, Longest: []int{100, 1 << 17, 5000}[seed%3], Algorithms: algorithms,
		}).Run(ctx, group.Communicator())
	})
}

// A program may destroy its group and make another one, as long as Spawn runs.
func TestAgain(t *testing.T) {
	each(t, func(t *testing.T, m mpi) { m.passes(t, 3, "again") })
}

func again() error {
	err := dist.Spawn(func(_ context.Context, rank int) error {
		for range 3 {
			if err := join(); err != nil {
				return err
			}
			if err := sum(); err != nil {
				return err
			}
			if err := dist.DestroyProcessGroup(); err != nil {
				return err
			}
		}
		return right(rank)
	})
	if err != nil {
		return err
	}
	return refused(dist.InitProcessGroup("ccl"))
}

// sum reduces one element.
func sum(opts ...dist.CallOption) error {
	rank, err := dist.GetRank()
	if err != nil {
		return err
	}
	size, err := dist.GetWorldSize()
	if err != nil {
		return err
	}
	v := []int64{int64(rank)}
	if err := dist.AllReduce(v, dist.Sum, opts...); err != nil {
		return err
	}
	if n := int64(size); v[0] != n*(n-1)/2 {
		return fmt.Errorf("the sum of %d ranks is %d", n, v[0])
	}
	return nil
}

// refused returns an error unless err says that MPI does not start twice.
func refused(err error) error {
	if failed, ok := errors.AsType[*dist.InitializationFailedError](err); !ok {
		return fmt.Errorf("a start after the end: %v (%v)", err, failed)
	}
	return nil
}

// Without Spawn, DestroyProcessGroup ends MPI.
func TestAlone(t *testing.T) {
	each(t, func(t *testing.T, m mpi) { m.passes(t, 2, "alone") })
}

func alone() error {
	if err := join(); err != nil {
		return err
	}
	if err := errors.Join(sum(), dist.DestroyProcessGroup()); err != nil {
		return err
	}
	return refused(dist.InitProcessGroup("ccl"))
}

// The error of the ranks that survive names the one that died, unless the launcher ends them.
func TestDeath(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		dir := t.TempDir()
		m.args = append(m.args[:len(m.args):len(m.args)], m.survivors...)
		out, err := m.start(t, 3, "dies", notesVariable+"="+dir, dyingVariable+"=1")
		if m.survivors == nil {
			require.Error(t, err, "a rank was killed: %s", out)
			return
		}
		for _, rank := range []string{"0", "2"} {
			said, err := os.ReadFile(filepath.Join(dir, rank))
			require.NoError(t, err, "%s", out)
			require.Regexp(t, `peer lost: rank 1 \(pid \d+(, host \S+)?\) is gone`, string(said))
		}
	})
}

func dies() error {
	return dist.Spawn(func(_ context.Context, rank int) error {
		if err := join(); err != nil {
			return err
		}
		for i := 0; ; i++ {
			if err := sum(dist.WithCallTimeout(3 * time.Second)); err != nil {
				return errors.Join(err, note(strconv.Itoa(rank), err.Error()))
			}
			if i != 100 {
				continue
			}
			if slices.Contains(strings.Fields(os.Getenv(dyingVariable)), strconv.Itoa(rank)) {
				return unix.Kill(os.Getpid(), unix.SIGKILL)
			}
			if rank == 0 {
				if err := note("running", ""); err != nil {
					return err
				}
			}
		}
	})
}

// Ranks that make different calls all hear how these differ.
func TestMismatch(t *testing.T) {
	each(t, func(t *testing.T, m mpi) { m.passes(t, 3, "mismatch") })
}

func mismatch() error {
	return dist.Spawn(func(_ context.Context, rank int) error {
		if err := join(); err != nil {
			return err
		}
		n, err := dist.GetWorldSize()
		if err != nil {
			return err
		}
		v := make([]float32, 4+(rank+1)/n)
		differ, ok := errors.AsType[*dist.MismatchError](dist.AllReduce(v, dist.Sum))
		if !ok || differ.Field != "count" {
			return fmt.Errorf("%+v", differ)
		}
		return errors.Join(right(rank), dist.DestroyProcessGroup())
	})
}

// A rank that does not come is named.
func TestMissing(t *testing.T) {
	each(t, func(t *testing.T, m mpi) { m.passes(t, 3, "missing") })
}

func missing() error {
	return dist.Spawn(func(_ context.Context, rank int) error {
		if err := join(); err != nil {
			return err
		}
		n, err := dist.GetWorldSize()
		if err != nil {
			return err
		}
		if rank == n-1 {
			if _, err := dist.Recv(make([]int64, 1), 0, 1, dist.WithCallTimeout(time.Minute)); err == nil { // until the group has failed
				return errors.New("a message that nobody has sent")
			}
			return errors.Join(right(rank), dist.DestroyProcessGroup())
		}
		late, ok := errors.AsType[*dist.TimeoutError](dist.Barrier(dist.WithCallTimeout(time.Second)))
		if !ok || len(late.Missing) != 1 || late.Missing[0] != n-1 {
			return fmt.Errorf("%+v", late)
		}
		return errors.Join(right(rank), dist.DestroyProcessGroup())
	})
}

// A launcher of another MPI than the library's is named.
func TestForeignLauncher(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		other := map[string]string{"Open MPI": "libmpich.so.12", "MPICH": "libmpi.so.40"}[m.name]
		m.passes(t, 2, "foreign", "GOCCL_MPI_LIBRARY="+other)
	})
}

func foreign() error {
	err := dist.InitProcessGroup("ccl")
	none, ok := errors.AsType[*dist.BackendNotAvailableError](err)
	if !ok || none.Requested != "mpi" {
		return fmt.Errorf("%v", err)
	}
	return nil
}
