//go:build interleave

package disttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

// Ranks that share a variable get a result that depends on their order, and a seed shows it.
func TestFindsWhatRanksShare(t *testing.T) {
	var shared atomic.Int64
	err := find(t, 3, func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		shared.Store(int64(rank))
		mean := []int{rank}
		if err := dist.AllReduce(mean, dist.Sum); err != nil {
			return err
		}
		if rank == 0 && shared.Load() != 2 { // the last rank's, if ranks come in their order
			return fmt.Errorf("the loss is that of rank %d", shared.Load())
		}
		return nil
	})
	require.ErrorContains(t, err, "rank 0: the loss is that of rank ")
	require.Regexp(t, `\nagain: go test( -race)? -tags interleave -run '\^TestFindsWhatRanksShare\$' \S+/dist/disttest -args -goccl.seed \d+ -goccl.count 1\n`, err.Error())
}

// Ranks that wait for each other for ever are found at once.
func TestFindsWaitsInACircle(t *testing.T) {
	err := find(t, 2, func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithTimeout(-1)); err != nil {
			return err
		}
		_, err := dist.Recv([]int{0}, 1-rank, 0)
		return err
	})
	require.ErrorContains(t, err, "no goroutine can go on: each waits for another one")
	require.ErrorContains(t, err, "rank 0 is in dist.Recv at disttest/found_test.go:")
	require.ErrorContains(t, err, "rank 1 is in dist.Recv at disttest/found_test.go:")
}

// A failure shows where each rank has been, in columns.
func TestLinesUnderSeeds(t *testing.T) {
	err := find(t, 2, withGroup(func(rank int) error {
		if rank == 1 {
			return errors.New("no data") // its peer waits
		}
		return sum()
	}))
	require.ErrorContains(t, err, "seed 1: rank 1: no data")
	_, picture, _ := strings.Cut(err.Error(), "\nlines in the order in which the ranks have reached them")
	require.Regexp(t, `\n +rank 0 +rank 1\n`, picture)
	require.Regexp(t, `\n[\d ]    found_test.go:\d+ func sum\(\) error \{ return dist.AllReduce\(.*(\n|$)`, picture)
	require.Regexp(t, `\n[\d ] {60,}found_test.go:\d+ if err := dist.InitProcessGroup\(.*\n`, picture)
}

// withGroup is a worker that calls f in the default group.
func withGroup(f func(rank int) error) func(context.Context, int) error {
	return func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		if err := f(rank); err != nil {
			return err
		}
		return dist.DestroyProcessGroup()
	}
}

func sum() error { return dist.AllReduce([]float32{1}, dist.Sum) }

// Right programs may wait for channels, groups and sleeps of their own.
func TestWaitsUnderSeeds(t *testing.T) {
	Seeds(t, 3, withGroup(func(int) error {
		sums, batches := make(chan error), make(chan int)
		dist.Go(func() { sums <- sum() })
		var all sync.WaitGroup
		all.Go(func() {
			defer close(batches)
			for i := range 3 {
				time.Sleep(time.Second)
				batches <- i
			}
		})
		for range batches {
			if err := sum(); err != nil {
				return err
			}
		}
		all.Wait()
		return <-sums
	}))
}

// What no seed orders is an error that says where it is, and what to do instead.
func TestFindsWhatNoSeedOrders(t *testing.T) {
	var mu sync.Mutex
	for _, program := range []struct {
		name string
		f    func(rank int) error
		want []string
	}{
		{"a lock across a call", func(int) error {
			mu.Lock()
			defer mu.Unlock()
			_, err := dist.GetRank()
			return errors.Join(err, sum())
		}, []string{"hold no lock of package sync across a call", "\n\trank 1 is in sync.(*Mutex).Lock at disttest/found_test.go:", "\n\trank 0 is in dist."}},
		{"a goroutine by go", func(int) error {
			done := make(chan error)
			go func() { done <- sum() }()
			return <-done
		}, []string{"start it by dist.Go", "a goroutine is in dist.AllReduce at disttest/found_test.go:"}},
		{"a goroutine that waits for ever", func(rank int) error {
			c := make(chan int)
			dist.Go(func() { c <- rank })
			go func() { c <- rank }()
			return sum()
		}, []string{"has left goroutines", "a goroutine of rank 1 is in chan send at disttest/found_test.go:", "started at disttest/found_test.go:"}},
		{"a panic", func(int) error {
			dist.Go(func() { panic("wrong") })
			return sum()
		}, []string{"panics: wrong", "at disttest/found_test.go:"}},
		{"a rank that waits for ever", func(rank int) error {
			if rank == 1 {
				<-make(chan int)
			}
			return sum()
		}, []string{"rank 1: the worker is stuck", "rank 1 is in chan receive at disttest/found_test.go:"}},
	} {
		t.Run(program.name, func(t *testing.T) {
			err := find(t, 2, withGroup(program.f))
			for _, want := range program.want {
				require.ErrorContains(t, err, want)
			}
			require.Regexp(t, `^seed \d+: `, err.Error())
			require.Regexp(t, `\nagain: go test .* -goccl.seed \d+ -goccl.count 1(\n|$)`, err.Error())
		})
	}
}

// A test that fails in a program, as by the race detector, says under which seed. The child process
// is this test as well.
func TestFailureUnderSeeds(t *testing.T) {
	if os.Getenv("DISTTEST_FAILS") != "" {
		Seeds(t, 2, withGroup(func(rank int) error {
			if rank == 1 {
				t.Error("wrong")
			}
			return sum()
		}))
		return
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestFailureUnderSeeds$", "-goccl.seed", "7")
	child.Env = append(os.Environ(), "DISTTEST_FAILS=1")
	out, err := child.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "seed 7: the test has failed, as the lines above say")
	require.Contains(t, string(out), "-goccl.seed 7 -goccl.count 1")
	require.NotContains(t, string(out), "seed 8")
}

// Tests that are parallel to each other run one after the other.
func TestParallelUnderSeeds(t *testing.T) {
	for range 2 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			Seeds(t, 2, withGroup(func(int) error { return sum() }))
		})
	}
}
