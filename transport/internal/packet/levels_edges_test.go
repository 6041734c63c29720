package packet_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/packet"
	"github.com/stretchr/testify/require"
)

// Close frees the memory of Alloc once no call uses it.
func TestCloseWhileACallUsesAlloc(t *testing.T) {
	g := onNodes(t, time.Minute, 0, 0, 1, 1)
	stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
	gates.Store(int64(2003), stop)
	defer gates.Delete(int64(2003))
	var all sync.WaitGroup
	all.Go(func() {
		<-stop.inside
		for _, c := range g {
			_ = c.Close()
		}
		close(stop.open)
	})
	errs := each(4, func(rank int) error {
		x, err := ccl.Alloc[int64](t.Context(), g[rank], 100)
		if err != nil {
			return err
		}
		x[0] = int64(2000 + rank)
		return ccl.AllReduce(t.Context(), g[rank], x, x, gated, ccl.WithAlgorithm("direct"))
	})
	all.Wait()
	for _, err := range errs {
		if err != nil {
			require.ErrorIs(t, err, ccl.ErrClosed)
		}
	}
}

// A configuration whose algorithm supports the whole group alone is enough.
func TestLevelsWithoutAlgorithm(t *testing.T) {
	c, err := config.Parse("ccl.yaml", []byte("version: 1\nalgorithms:\n  sized: {module: ring, world_size: 4}\ndefaults: {algorithm: sized}\n"))
	require.NoError(t, err)
	for _, nodes := range [][]int{{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 0}, {0, 1, 2, 3}} {
		settings, err := c.Resolve(config.Request{Ranks: 4})
		require.NoError(t, err)
		g := connect(t, packet.OnNodes(t, nodes), ccl.WithSelector(settings))
		for _, err := range each(4, func(rank int) error {
			x := []int64{1}
			err := ccl.AllReduce(t.Context(), g[rank], x, x, ccl.Sum)
			return errors.Join(err, g[rank].SplitLocal().Barrier(t.Context()))
		}) {
			require.NoError(t, err)
		}
	}
}

// A root that leads no node does not accuse its leader, which waits for others.
func TestTwoLevelStuckReduce(t *testing.T) {
	g := onNodes(t, 500*time.Millisecond, 0, 0, 1, 1)
	stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
	gates.Store(int64(1003), stop)
	defer gates.Delete(int64(1003))
	wait := stop.openOnceAllFailed(t, g)
	errs := each(4, func(rank int) error {
		x := make([]int64, 100)
		x[0] = int64(1000 + rank)
		var recv []int64
		if rank == 1 {
			recv = make([]int64, 100)
		}
		return ccl.Reduce(t.Context(), g[rank], x, recv, gated, 1)
	})
	wait()
	for rank, err := range errs {
		if late, ok := errors.AsType[*transport.TimeoutError](err); ok {
			require.Subset(t, []int{2, 3}, append(late.Missing, late.Behind...), "rank %d: %v", rank, err)
		}
	}
	require.Error(t, errs[1])
}

// A rank of a node that gives up first, before its leader does, accuses the node for which the leader waits.
func TestTwoLevelGivesUpFirst(t *testing.T) {
	for i, coll := range []string{"all_reduce", "reduce"} {
		t.Run(coll, func(t *testing.T) {
			t.Parallel()
			g, first := onNodes(t, time.Minute, 0, 0, 1, 1), int64(6000+10*i)
			stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
			gates.Store(first+3, stop)
			defer gates.Delete(first + 3)
			wait := stop.openOnceAllFailed(t, g)
			errs := each(4, func(rank int) error {
				x, limit := make([]int64, 100), ccl.WithTimeout(time.Minute)
				if x[0] = first + int64(rank); rank == 1 {
					limit = ccl.WithTimeout(50 * time.Millisecond)
				}
				if coll == "all_reduce" {
					return ccl.AllReduce(t.Context(), g[rank], x, x, gated, limit)
				}
				var recv []int64
				if rank == 1 {
					recv = make([]int64, 100)
				}
				return ccl.Reduce(t.Context(), g[rank], x, recv, gated, 1, limit)
			})
			wait()
			for rank, err := range errs {
				late, ok := errors.AsType[*transport.TimeoutError](err)
				if !ok { // it has reduced its part already
					require.Greater(t, rank, 1, "%v", err)
					continue
				}
				require.Subset(t, []int{2, 3}, append(late.Missing, late.Behind...), "rank %d: %v", rank, err)
			}
		})
	}
}

// A rank that comes late to a level is not at fault if it waits for another rank in the whole group.
func TestTwoLevelLateEntry(t *testing.T) {
	eps := packet.OnNodes(t, []int{0, 0, 1, 1})
	g := preferring(t, time.Second, eps)
	stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
	gates.Store(int64(3003), stop)
	defer gates.Delete(int64(3003))
	arrive := packet.Hold(eps[1], 3) // its line has come to ranks 0 and 2 alone
	wait := stop.openOnceAllFailed(t, g)
	errs := each(4, func(rank int) error {
		x := make([]int64, 100)
		x[0] = int64(3000 + rank)
		limit := ccl.WithTimeout(time.Minute)
		if rank == 0 { // it gives up first
			limit = ccl.WithTimeout(time.Second)
		}
		return ccl.AllReduce(t.Context(), g[rank], x, x, gated, limit)
	})
	arrive()
	wait()
	for rank, err := range errs {
		late, ok := errors.AsType[*transport.TimeoutError](err)
		require.True(t, ok, "rank %d: %v", rank, err)
		require.Subset(t, []int{2, 3}, append(late.Missing, late.Behind...), "rank %d: %v", rank, err)
	}
}

// failing is an endpoint that forms no levels, or no groups.
type failing struct {
	transport.Endpoint
	level, group func(ctx context.Context) error // nil: it does
}

func (f failing) Nodes() []int         { return f.Endpoint.(transport.Nodes).Nodes() }
func (f failing) Host(rank int) string { return f.Endpoint.(transport.Nodes).Host(rank) }
func (f failing) Culprit(rank int) int { return f.Endpoint.(transport.Nodes).Culprit(rank) }
func (f failing) Level(ctx context.Context, members []int) (transport.Endpoint, error) {
	if f.level == nil {
		return f.Endpoint.(transport.Nodes).Level(ctx, members)
	}
	return nil, f.level(ctx)
}
func (f failing) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	if f.group == nil {
		return f.Endpoint.(transport.Groups).Group(ctx, number, members)
	}
	return nil, f.group(ctx)
}

// If a rank forms no levels, or no group of its node, all ranks say why, once.
func TestUnformedLevels(t *testing.T) {
	broken := errors.New("the lid is off")
	stop := func(context.Context) error { return broken }
	for bad := range 4 {
		for name, f := range map[string]failing{"level": {level: stop}, "group of a node": {group: stop}} {
			t.Run(fmt.Sprint(name, ",rank=", bad), func(t *testing.T) {
				eps := packet.OnNodes(t, []int{0, 0, 1, 1})
				f.Endpoint = eps[bad]
				eps[bad] = f
				for rank, err := range each(4, func(rank int) error {
					c, err := ccl.New(t.Context(), eps[rank])
					if err == nil {
						_ = c.Close()
					}
					return err
				}) {
					_, ok := errors.AsType[*transport.InitializationFailedError](err)
					require.True(t, ok, "rank %d: %v", rank, err)
					require.ErrorContains(t, err, broken.Error(), "rank %d", rank)
					require.Equal(t, 1, strings.Count(err.Error(), "initialization of"), "rank %d: %v", rank, err)
				}
			})
		}
	}
}

// elsewhen is an endpoint that forms groups within another context.
type elsewhen struct {
	transport.Endpoint
	within func(context.Context) context.Context
}

func (e elsewhen) Nodes() []int         { return e.Endpoint.(transport.Nodes).Nodes() }
func (e elsewhen) Host(rank int) string { return e.Endpoint.(transport.Nodes).Host(rank) }
func (e elsewhen) Culprit(rank int) int { return e.Endpoint.(transport.Nodes).Culprit(rank) }
func (e elsewhen) Level(ctx context.Context, members []int) (transport.Endpoint, error) {
	return e.Endpoint.(transport.Nodes).Level(ctx, members)
}
func (e elsewhen) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return e.Endpoint.(transport.Groups).Group(e.within(ctx), number, members)
}

// The error of a group that was not formed says so once, and names the group by its ranks.
func TestTextOfAnUnformedGroup(t *testing.T) {
	stop := errors.New("the user pressed stop")
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	for name, atOnce := range map[string]bool{"group of a node": true, "group of a call": false} {
		for _, nodes := range [][]int{{0, 0, 1, 1}, {0, 1, 2, 3}} {
			t.Run(fmt.Sprint(name, nodes), func(t *testing.T) {
				eps, armed := packet.OnNodes(t, nodes), atOnce
				eps[1] = elsewhen{eps[1], func(ctx context.Context) context.Context {
					if armed {
						return stopped
					}
					return ctx
				}}
				wants := map[int]string{0: "group of ranks 0, 1, which are on one node: ", 1: "group of rank 1, which is alone on its node: "}[nodes[1]]
				var formed sync.WaitGroup
				formed.Add(4)
				errs := each(4, func(rank int) error {
					c, err := ccl.New(t.Context(), eps[rank])
					formed.Done()
					if err != nil {
						return err
					}
					defer c.Close()
					if formed.Wait(); rank == 1 {
						armed, wants = true, "group of ranks 0, 1, made by new_group, call 1: "
					}
					_, err = c.NewGroup(t.Context(), []int{0, 1})
					return err
				})
				require.ErrorIs(t, errs[1], stop)
				require.ErrorContains(t, errs[1], wants)
				for rank, err := range errs[:2] {
					require.Equal(t, 1, strings.Count(err.Error(), "initialization of"), "rank %d: %v", rank, err)
					require.NotRegexp(t, `group \d`, err.Error(), "rank %d", rank)
				}
			})
		}
	}
}

// The timeout limits how long ranks form levels.
func TestLevelsThatNeverForm(t *testing.T) {
	for _, bad := range []int{0, 3} {
		t.Run(fmt.Sprint("rank=", bad), func(t *testing.T) {
			settings, err := config.Default().Resolve(config.Request{Ranks: 4, Timeout: 300 * time.Millisecond})
			require.NoError(t, err)
			eps := packet.OnNodes(t, []int{0, 0, 1, 1})
			over := make(chan struct{})
			eps[bad] = failing{Endpoint: eps[bad], level: func(context.Context) error { <-over; return errors.New("it was stopped") }}
			var others sync.WaitGroup
			others.Add(3)
			go func() { others.Wait(); close(over) }()
			for rank, err := range each(4, func(rank int) error {
				if rank != bad {
					defer others.Done()
				}
				c, err := ccl.New(t.Context(), eps[rank], ccl.WithSelector(settings))
				if err == nil {
					_ = c.Close()
				}
				return err
			}) {
				require.Error(t, err, "rank %d", rank)
				if late, ok := errors.AsType[*transport.TimeoutError](err); ok && rank != bad {
					require.Equal(t, []int{bad}, append(late.Missing, late.Behind...), "rank %d: %v", rank, err)
				}
				t.Log(rank, err)
			}
		})
	}
}

// ending is an endpoint that calls ended at the end of each entry, and completes before each completion.
type ending struct {
	transport.Endpoint
	ended, completes func()
}

func (e ending) Nodes() []int         { return e.Endpoint.(transport.Nodes).Nodes() }
func (e ending) Host(rank int) string { return e.Endpoint.(transport.Nodes).Host(rank) }
func (e ending) Culprit(rank int) int { return e.Endpoint.(transport.Nodes).Culprit(rank) }
func (e ending) Level(ctx context.Context, members []int) (transport.Endpoint, error) {
	return e.Endpoint.(transport.Nodes).Level(ctx, members)
}
func (e ending) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return e.Endpoint.(transport.Groups).Group(ctx, number, members)
}
func (e ending) Enter(a *transport.Arrival) (transport.Role, error) {
	defer e.ended()
	return e.Endpoint.Enter(a)
}
func (e ending) Complete() error {
	e.completes()
	return e.Endpoint.Complete()
}

// A context that ends once all ranks have come to a region is no disagreement about it. The group has then
// failed, and no rank has the region, though the last rank completes the call in which they came.
func TestCancelledRegion(t *testing.T) {
	for _, nodes := range [][]int{{0, 0, 0}, {0, 1, 0, 1}, {0, 0, 1}, {0, 1, 1}} {
		eps := packet.OnNodes(t, nodes)
		ctx, cancel := context.WithCancel(t.Context())
		armed := false
		var g []*ccl.Communicator
		eps[0] = ending{eps[0], func() {
			if armed {
				cancel()
			}
		}, func() {}}
		last := len(nodes) - 1
		eps[last] = ending{eps[last], func() {}, func() {
			for armed && g[last].Err() == nil { // rank 0 gives up
				runtime.Gosched()
			}
		}}
		g = connect(t, eps)
		armed = true
		for rank, err := range each(len(nodes), func(rank int) error {
			in := t.Context()
			if rank == 0 {
				in = ctx
			}
			_, err := ccl.CreateSharedRegion[int64](in, g[rank], 100)
			return err
		}) {
			require.ErrorContains(t, err, "context canceled", "rank %d", rank)
			require.NotContains(t, err.Error(), "disagree", "rank %d", rank)
		}
	}
}

// A group of some ranks makes do without an algorithm that only the whole group can do, unless the call names it.
func TestPartOfTwoLevels(t *testing.T) {
	settings, err := config.Default().Resolve(config.Request{Ranks: 4, Algorithm: "hierarchical"})
	require.NoError(t, err)
	g := connect(t, packet.OnNodes(t, []int{0, 0, 1, 1}), ccl.WithSelector(settings))
	for _, err := range each(4, func(rank int) error {
		for _, members := range [][]int{{0, 2}, {1, 3}, {0, 1}, {2, 3}} {
			if !slices.Contains(members, rank) {
				if _, err := g[rank].NewGroup(t.Context(), members); err != nil {
					return err
				}
				continue
			}
			part, err := g[rank].NewGroup(t.Context(), members)
			if err != nil {
				return err
			}
			x := []int32{1}
			if err := ccl.AllReduce(t.Context(), part, x, x, ccl.Sum); err != nil || x[0] != 2 || part.LastChoice().Entry != "direct" {
				return fmt.Errorf("%v by %s: %w", x, part.LastChoice().Entry, err)
			}
			err = ccl.AllReduce(t.Context(), part, x, x, ccl.Sum, ccl.WithAlgorithm("hierarchical"))
			if !errors.Is(err, ccl.ErrNotImplemented) {
				return fmt.Errorf("hierarchical by name: %w", err)
			}
			if err := part.Close(); err != nil {
				return err
			}
		}
		x := []int32{1}
		return ccl.AllReduce(t.Context(), g[rank], x, x, ccl.Sum)
	}) {
		require.NoError(t, err)
	}
	require.Equal(t, "hierarchical", g[0].LastChoice().Entry)
}
