package ccl_test

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

var randomPrograms = flag.Int("programs", 12, "so many random programs on each kind of world")

// closing closes groups at the end of a test.
func closing(t *testing.T, c *ccl.Communicator) *ccl.Communicator {
	if c != nil {
		t.Cleanup(func() { c.Close() })
	}
	return c
}

// members checks that a group has the ranks of the first group, in this order, by a
// call in it.
func members(c *ccl.Communicator, me int, want ...int) error {
	if c == nil {
		return errors.New("no group")
	}
	all := make([]int, c.Size())
	if err := ccl.AllGather(bg, c, []int{me}, all); err != nil {
		return err
	}
	for r := range all {
		if c.GlobalRank(r) != all[r] {
			return fmt.Errorf("GlobalRank(%d) is %d, and rank %d is there", r, c.GlobalRank(r), all[r])
		}
	}
	if !slices.Equal(all, want) || all[c.Rank()] != me {
		return fmt.Errorf("the group has the ranks %d, and this is %d; want %d", all, c.Rank(), want)
	}
	return nil
}

func TestSplit(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 5)
		errs := each(5, func(r int) error {
			parity, err := g[r].Split(bg, r%2, -r)
			if err != nil {
				return err
			}
			closing(t, parity)
			want := [][]int{{4, 2, 0}, {3, 1}}[r%2]
			color := 7
			if r == 2 {
				color = -1
			}
			most, err := g[r].Split(bg, color, 0)
			if err != nil || (most == nil) != (r == 2) {
				return fmt.Errorf("%v, %w", most, err)
			}
			closing(t, most)
			pair, err := parity.Split(bg, parity.Rank()/2, 0) // groups of groups
			if err != nil {
				return err
			}
			closing(t, pair)
			err = errors.Join(members(parity, r, want...), members(g[r], r, 0, 1, 2, 3, 4),
				members(pair, r, [][]int{{0}, {3, 1}, {4, 2}, {3, 1}, {4, 2}}[r]...))
			if most != nil {
				err = errors.Join(err, members(most, r, 0, 1, 3, 4))
			}
			return err
		})
		require.NoError(t, errors.Join(errs...))
	})
}

func TestNewGroup(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 4)
		errs := each(4, func(r int) error {
			a, err := g[r].NewGroup(bg, []int{3, 0, 2}) // sorted
			if err != nil {
				return err
			}
			b, err := g[r].NewGroup(bg, []int{2, 1})
			if err != nil {
				return err
			}
			closing(t, a)
			closing(t, b)
			if (a == nil) != (r == 1) || (b == nil) != (r == 0 || r == 3) {
				return errors.New("it is in a group that it is not in")
			}
			for range 50 { // overlapping groups, in turns
				if a != nil {
					err = errors.Join(err, members(a, r, 0, 2, 3))
				}
				if b != nil {
					err = errors.Join(err, members(b, r, 1, 2))
				}
			}
			return errors.Join(err, sum(g[r], 10))
		})
		require.NoError(t, errors.Join(errs...))
	})
}

// If ranks name different members of a new group, all get an error and no group is made.
func TestNewGroupMismatch(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		for _, err := range each(2, func(r int) error { _, err := g[r].NewGroup(bg, []int{r}); return err }) {
			var m *ccl.MismatchError
			require.ErrorAs(t, err, &m)
			require.EqualError(t, m, "ranks disagree on ranks: [0] on rank 0; [1] on rank 1")
		}
		for _, err := range each(2, func(r int) error { _, err := g[r].NewGroup(bg, []int{r}); return err }) {
			require.ErrorContains(t, err, "has failed before; destroy it and initialize it again: ranks disagree on ranks: [0] on rank 0; [1] on rank 1")
			require.ErrorContains(t, err, "new_group, call 2")
		}
	})
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var bad *ccl.InvalidArgumentError
		for _, ranks := range [][]int{nil, {0, 2}, {-1}, {1, 1}} {
			for _, err := range each(2, func(r int) error { _, err := g[r].NewGroup(bg, ranks); return err }) {
				require.ErrorAs(t, err, &bad)
			}
		}
		allSum(t, g, 10)
	})
}

// A failure stays in its group, and its errors name the group.
func TestGroupsFailAlone(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		pairs := make([]*ccl.Communicator, 3)
		require.NoError(t, errors.Join(each(3, func(r int) (err error) {
			pairs[r], err = g[r].NewGroup(bg, []int{0, 2})
			closing(t, pairs[r])
			return err
		})...))
		pairs[0].Abort(errors.New("had enough"))
		err := sum(pairs[2], 3)
		var aborted *transport.AbortedError
		require.ErrorAs(t, err, &aborted)
		require.ErrorContains(t, err, "on group of ranks 0, 2, made by new_group, call 1")
		var failed *ccl.CollectiveFailedError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, pairs[2].Name(), failed.Group)
		allSum(t, g, 10)

		again := make([]*ccl.Communicator, 3)
		require.NoError(t, errors.Join(each(3, func(r int) (err error) {
			again[r], err = g[r].NewGroup(bg, []int{0, 2})
			closing(t, again[r])
			return err
		})...))
		for _, c := range g {
			require.NoError(t, c.Close()) // the groups made of it live on
		}
		require.NoError(t, errors.Join(each(3, func(r int) error {
			if r == 1 {
				return nil
			}
			return sum(again[r], 3)
		})...))
	})
}

// The function of WithFailures is called for each call and message that fails, before the call
// returns, also in groups made of the communicator.
func TestWithFailures(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		heard := make([][]*ccl.CollectiveFailedError, 3) // by rank; each is its goroutine's
		g := join(t, connect, settings(t, 3, patient, nil), ccl.WithFailures(func(c *ccl.Communicator, call *ccl.CallError) {
			err, _ := errors.AsType[*ccl.CollectiveFailedError](call)
			rank := c.GlobalRank(err.Rank)
			heard[rank] = append(heard[rank], err)
		}))
		require.NoError(t, errors.Join(each(3, func(r int) error {
			pair, err := g[r].NewGroup(bg, []int{1, 2})
			if err != nil || r == 0 {
				return err
			}
			closing(t, pair)
			if _, err := ccl.Recv(bg, g[r], []int{0}, 0, 0, ccl.WithTimeout(time.Millisecond)); len(heard[r]) != 1 || !errors.Is(err, heard[r][0]) {
				return fmt.Errorf("the receive returned %w, and before %v was told", err, heard[r])
			}
			if r == 2 {
				return pair.Close()
			}
			if err := sum(pair, 3); len(heard[r]) != 2 || !errors.Is(err, heard[r][1]) {
				return fmt.Errorf("the call returned %w, and before %v was told", err, heard[r])
			}
			return nil
		})...))
		require.Empty(t, heard[0])
	})
}

// A thousand groups that are made and closed leave nothing behind.
func TestManyGroups(t *testing.T) {
	connect := func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }
	g := group(t, connect, 3)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	make := func(count int) {
		require.NoError(t, errors.Join(each(3, func(r int) error {
			for i := range count {
				c, err := g[r].Split(bg, (r+i)%2, 0)
				if err == nil {
					err = errors.Join(sum(c, 3), c.Close())
				}
				if err != nil {
					return err
				}
			}
			return nil
		})...))
	}
	make(100)
	goroutines, before := runtime.NumGoroutine(), heap()
	make(1000)
	require.Less(t, heap(), before+256<<10)
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
}

// Random programs on overlapping groups give the right results.
func TestRandomPrograms(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for seed := range uint64(*randomPrograms) {
			t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
				n := 2 + int(seed%4)
				g := group(t, connect, n)
				p := stress.New(seed, stress.Options{Ranks: n, Events: 150, Longest: 3000, Algorithms: []string{"direct", "ring"}})
				require.NoError(t, errors.Join(each(n, func(r int) error { return p.Run(bg, g[r]) })...))
				allSum(t, g, 10)
			})
		}
	})
}

// A group of all ranks in their order keeps the topology; one in another order has a ring.
func TestGroupOfAll(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		cfg, err := config.Parse("test", []byte("version: 1\ntopology: {kind: torus_2d, w: 2, h: 2}\ndefaults: {algorithm: direct}\nalgorithms:\n  direct: {module: direct}\n"))
		require.NoError(t, err)
		onGrid, err := cfg.Resolve(config.Request{Registry: ccl.Registry{"direct": direct.Algorithm}, Ranks: 4})
		require.NoError(t, err)
		g := join(t, connect, onGrid)
		waits := make([]func() error, len(g))
		kinds := make([][2]topology.Kind, len(g))
		for r, c := range g {
			waits[r] = async(func() error {
				all, err := c.NewGroup(bg, []int{3, 1, 2, 0})
				if err != nil {
					return err
				}
				back, err := c.Split(bg, 0, -r)
				if err != nil {
					return err
				}
				kinds[r] = [2]topology.Kind{all.Selector().Topology().Kind(), back.Selector().Topology().Kind()}
				return errors.Join(ccl.AllReduce(bg, all, []int32{1}, []int32{1}, ccl.Sum), all.Close(), back.Close())
			})
		}
		for r, wait := range waits {
			require.NoError(t, wait())
			require.Equal(t, [2]topology.Kind{topology.Torus2D, topology.Ring1D}, kinds[r])
		}
	})
}
