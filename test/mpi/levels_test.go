//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// algorithmVariable names the algorithm by which a part calls.
const algorithmVariable = "TEST_GOCCL_ALGORITHM"

// The ranks of a node share regions, Alloc and SplitLocal, and calls by default have two levels.
func TestTwoLevels(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		c := newCluster(t, 2)
		passes := c.passes
		if m.name == "MPICH" {
			passes = c.isRight // see TestNodes
		}
		passes(t, m, 2, "levels")
	})
}

func levels() error {
	return inGroup(func(ctx context.Context, rank int) error {
		group, err := dist.Default()
		if err != nil {
			return err
		}
		c := group.Communicator()
		node, place := rank/2, rank%2
		if l := c.SplitLocal(); l.Rank() != place || l.Size() != 2 || c.IsLeader() != (place == 0) {
			return fmt.Errorf("rank %d is %d of %d on its node", rank, l.Rank(), l.Size())
		}
		if err := c.SplitLocal().Barrier(ctx); err != nil {
			return err
		}
		region, err := ccl.CreateSharedRegion[int64](ctx, c, 1000)
		if err != nil {
			return err
		}
		for i := range region.LeaderSlice() {
			region.LeaderSlice()[i] = int64(1000*node + i)
		}
		if err := region.Fence(ctx); err != nil {
			return err
		}
		for i, x := range region.Slice() {
			if x != int64(1000*node+i) {
				return fmt.Errorf("element %d of the region of node %d is %d", i, node, x)
			}
		}
		if err := region.Close(); err != nil {
			return err
		}
		x, err := ccl.Alloc[float64](ctx, c, 100_000)
		if err != nil {
			return err
		}
		for i := range x {
			x[i] = float64(i + rank)
		}
		if err := dist.AllReduce(x, dist.Sum); err != nil {
			return err
		}
		for i, got := range x {
			if want := float64(4*i + 6); got != want {
				return fmt.Errorf("element %d is %v instead of %v", i, got, want)
			}
		}
		if by := c.LastChoice().Entry; by != "hierarchical" {
			return fmt.Errorf("all_reduce of 800 kB by %s", by)
		}
		return nil
	})
}

// Of a tensor that all ranks reduce, each link carries half as much as without levels, on 2 nodes of 2 ranks.
func TestTwoLevelsCarryHalf(t *testing.T) {
	each(t, func(t *testing.T, m mpi) {
		c := newCluster(t, 2)
		passes := c.passes
		if m.name == "MPICH" {
			passes = c.isRight
		}
		c.limitLinks(t)
		carried := make(map[string]int)
		for _, by := range []string{"direct", "ring", "hierarchical"} {
			before := c.received(t)
			passes(t, m, 2, "carry", algorithmVariable+"="+by, notesVariable+"="+c.place)
			after := c.received(t)
			carried[by] = slices.Max([]int{after[0] - before[0], after[1] - before[1]})
			t.Logf("%-12s %4d MiB over a link", by, carried[by]>>20)
			t.Log(c.times(t))
		}
		require.LessOrEqual(t, float64(carried["hierarchical"]), 0.5*float64(carried["direct"]))
		require.Less(t, carried["hierarchical"], carried["ring"])
	})
}

// limitLinks limits all links to 1 Gbit/s in each direction.
func (c *cluster) limitLinks(t *testing.T) {
	t.Helper()
	const limit = "root tbf rate 1gbit burst 128kb latency 50ms"
	for i := range c.nodes {
		c.do(t, "tc qdisc add dev "+nodeName(i+1)+" "+limit)
		c.on(t, i+1, "tc qdisc add dev eth0 "+limit)
	}
}

// times returns the times that carry has measured.
func (c *cluster) times(t *testing.T) string {
	t.Helper()
	return c.await(t, "times")
}

// carry makes all-reduces of several sizes by one algorithm, and notes how long they take.
func carry() error {
	return inGroup(func(_ context.Context, rank int) error {
		by := dist.WithCallAlgorithm(os.Getenv(algorithmVariable))
		var text strings.Builder
		for _, bytes := range []int{64 << 10, 1 << 20, 16 << 20} {
			x := make([]float32, bytes/4)
			const calls = 5
			var took []time.Duration
			for range calls {
				if err := dist.Barrier(); err != nil {
					return err
				}
				begin := time.Now()
				if err := dist.AllReduce(x, dist.Sum, by); err != nil {
					return err
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			fmt.Fprintf(&text, "%9d bytes: %v\n", bytes, took[calls/2])
		}
		if rank != 0 {
			return nil
		}
		return note("times", text.String())
	})
}

// A rank that dies in the middle of calls with two levels is named by all survivors.
func TestTwoLevelsDeath(t *testing.T) {
	for _, dying := range []string{"0", "1", "2", "3"} {
		t.Run("rank="+dying, func(t *testing.T) {
			for _, m := range installed {
				if m.survivors == nil {
					continue // TestDeathOnNode has the others
				}
				m.run(t, func(t *testing.T, m mpi) {
					c := newCluster(t, 2)
					m.args = append(m.args[:len(m.args):len(m.args)], m.survivors...)
					j := c.start(t, m, 2, "fall", notesVariable+"="+c.place, dyingVariable+"="+dying)
					for rank := range 4 {
						if dying != strconv.Itoa(rank) {
							require.Regexp(t, `peer lost: rank `+dying+` \(pid \d+(, host \S+)?\) is gone`, c.await(t, strconv.Itoa(rank)), "rank %d", rank)
						}
					}
					j.interrupt(t)
					_ = j.wait(t)
				})
			}
		})
	}
}

// A leader that is stopped in the middle of calls is named by the others, although the timeout is short. The other rank of its node may be
// missing in the next call.
func TestTwoLevelsStopped(t *testing.T) {
	for stopped, says := range map[string]string{"0": "(rank 0|ranks 0, 1)", "2": "(rank 2|ranks 2, 3)"} {
		t.Run("rank="+stopped, func(t *testing.T) {
			for _, m := range installed {
				if m.survivors == nil {
					continue // its launcher does not end a job with a stopped rank
				}
				m.run(t, func(t *testing.T, m mpi) {
					c := newCluster(t, 2)
					m.args = append(m.args[:len(m.args):len(m.args)], m.survivors...)
					j := c.start(t, m, 2, "fall", notesVariable+"="+c.place, dyingVariable+"="+stopped, stopsVariable+"=1", "GOCCL_TIMEOUT=1s")
					for rank := range 4 {
						if stopped != strconv.Itoa(rank) {
							require.Regexp(t, "waited for "+says+"[, ]", c.await(t, strconv.Itoa(rank)), "rank %d", rank)
						}
					}
					j.interrupt(t)
					_ = j.wait(t)
				})
			}
		})
	}
}

// fall makes long calls, until a rank kills or stops itself in the middle of one.
func fall() error {
	return dist.Spawn(func(_ context.Context, rank int) error {
		if err := join(); err != nil {
			return err
		}
		x := make([]float32, 4<<20)
		for i := 0; ; i++ {
			if i == 3 && os.Getenv(dyingVariable) == strconv.Itoa(rank) {
				signal := unix.SIGKILL
				if os.Getenv(stopsVariable) != "" {
					signal = unix.SIGSTOP
				}
				time.AfterFunc(3*time.Millisecond, func() { _ = unix.Kill(os.Getpid(), signal) }) // somewhere in the call
			}
			if err := dist.AllReduce(x, dist.Sum, dist.WithCallAlgorithm("hierarchical")); err != nil {
				return errors.Join(err, note(strconv.Itoa(rank), err.Error()))
			}
		}
	})
}
