package ccl_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

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

// Groups that ranks name differently are an error, and none is made.
func TestNewGroupMismatch(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		for _, err := range each(2, func(r int) error { _, err := g[r].NewGroup(bg, []int{r}); return err }) {
			var m *ccl.MismatchError
			require.ErrorAs(t, err, &m)
			require.Equal(t, "ranks", m.Field)
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

// A failure stays in its group; and its errors name it.
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
		var aborted *ccl.AbortedError
		require.ErrorAs(t, err, &aborted)
		require.ErrorContains(t, err, "on group of ranks 0, 2, made by call 1")
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

// A thousand groups, made and closed, leave nothing.
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

// Random programs on random groups that overlap, some of it begun and waited for later,
// against what they have to give. Every rank is in many groups at once, and makes the
// calls of each in the same order as the others.
func TestRandomPrograms(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
				const n = 4
				g := group(t, connect, n)
				require.NoError(t, errors.Join(each(n, func(r int) error { return program(g[r], seed) })...))
			})
		}
	})
}

// program is what every rank does: the same numbers for all.
func program(world *ccl.Communicator, seed uint64) (err error) {
	random := rand.New(rand.NewPCG(seed, 1))
	me, n := world.Rank(), world.Size()
	type member struct {
		comm  *ccl.Communicator
		ranks []int
	}
	var groups []member
	for range 5 {
		ranks := random.Perm(n)[:1+random.IntN(n)]
		slices.Sort(ranks)
		c, err := world.NewGroup(bg, ranks)
		if err != nil {
			return err
		}
		groups = append(groups, member{c, ranks})
	}
	defer func() {
		for _, m := range groups {
			if m.comm != nil {
				err = errors.Join(err, m.comm.Close())
			}
		}
	}()
	var later []func() error
	for step := range 150 {
		m := groups[random.IntN(len(groups))]
		kind, count, root := random.IntN(5), 1+random.IntN(300), random.IntN(len(m.ranks))
		async, settle := random.IntN(2) == 0, random.IntN(8) == 0
		if m.comm != nil {
			check, w, err := randomCall(m.comm, m.ranks, kind, count, root, step, async)
			if err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
			if w == nil {
				err = check()
			} else {
				later = append(later, func() error { return errors.Join(w.Wait(bg), check()) })
			}
			if err != nil {
				return fmt.Errorf("rank %d, step %d: %w", me, step, err)
			}
		}
		for settle && len(later) > 0 {
			if err := later[0](); err != nil {
				return fmt.Errorf("rank %d, before step %d: %w", me, step, err)
			}
			later = later[1:]
		}
	}
	for _, wait := range later {
		err = errors.Join(err, wait())
	}
	return err
}

// randomCall makes or begins a call, and returns how to check what it gave.
func randomCall(c *ccl.Communicator, ranks []int, kind, count, root, step int, async bool) (check func() error, w *ccl.Work, err error) {
	n, me := len(ranks), c.Rank()
	value := func(rank, i int) int64 { return int64(ranks[rank]*1000 + i*7 + step) }
	fill := func(rank, count int) []int64 {
		x := make([]int64, count)
		for i := range x {
			x[i] = value(rank, i)
		}
		return x
	}
	total := func(i int) (sum int64) {
		for r := range n {
			sum += value(r, i)
		}
		return sum
	}
	var in, out, want []int64
	switch kind {
	case 0:
		in, out = fill(me, count), make([]int64, count)
		for i := range out {
			want = append(want, total(i))
		}
		if async {
			w = ccl.AllReduceAsync(bg, c, in, out, ccl.Sum)
		} else {
			err = ccl.AllReduce(bg, c, in, out, ccl.Sum)
		}
	case 1:
		in, out = fill(me, count), make([]int64, count*n)
		for r := range n {
			want = append(want, fill(r, count)...)
		}
		if async {
			w = ccl.AllGatherAsync(bg, c, in, out)
		} else {
			err = ccl.AllGather(bg, c, in, out)
		}
	case 2:
		out, want = fill(me, count), fill(root, count)
		if async {
			w = ccl.BroadcastAsync(bg, c, out, root)
		} else {
			err = ccl.Broadcast(bg, c, out, root)
		}
	case 3:
		in, out = fill(me, count*n), make([]int64, count)
		for i := range out {
			want = append(want, total(me*count+i))
		}
		if async {
			w = ccl.ReduceScatterAsync(bg, c, in, out, ccl.Sum)
		} else {
			err = ccl.ReduceScatter(bg, c, in, out, ccl.Sum)
		}
	default:
		in, out = fill(me, count*n), make([]int64, count*n)
		for r := range n {
			want = append(want, fill(r, count*n)[me*count:(me+1)*count]...)
		}
		if async {
			w = ccl.AllToAllAsync(bg, c, in, out)
		} else {
			err = ccl.AllToAll(bg, c, in, out)
		}
	}
	return func() error {
		if !slices.Equal(out, want) {
			return fmt.Errorf("call kind %d of %d elements in %v is wrong", kind, count, ranks)
		}
		return nil
	}, w, err
}
