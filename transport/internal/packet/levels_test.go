package packet_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/packet"
	"github.com/stretchr/testify/require"
)

// preferred chooses hierarchical wherever it can.
const preferred = `version: 1
algorithms: {direct: {module: direct}, ring: {module: ring}, tree: {module: tree}, hierarchical: {module: hierarchical, params: {chunk: 64}}}
rules: [{nodes: "2-", algorithm: hierarchical}, {algorithm: direct}]
`

// onNodes returns the communicators of ranks on nodes with these numbers, by rank. The test closes them.
func onNodes(t *testing.T, timeout time.Duration, nodes ...int) []*ccl.Communicator {
	return preferring(t, timeout, packet.OnNodes(t, nodes))
}

// preferring returns the communicators of endpoints, which choose two levels.
func preferring(t *testing.T, timeout time.Duration, eps []transport.Endpoint) []*ccl.Communicator {
	c, err := config.Parse("ccl.yaml", []byte(preferred))
	require.NoError(t, err)
	settings, err := c.Resolve(config.Request{Ranks: len(eps), Timeout: timeout})
	require.NoError(t, err)
	return connect(t, eps, ccl.WithSelector(settings))
}

func connect(t *testing.T, eps []transport.Endpoint, opts ...ccl.Option) []*ccl.Communicator {
	comms := make([]*ccl.Communicator, len(eps))
	each(len(eps), func(rank int) (err error) {
		comms[rank], err = ccl.New(t.Context(), eps[rank], opts...)
		require.NoError(t, err)
		return nil
	})
	t.Cleanup(func() {
		for _, c := range comms {
			require.NoError(t, c.Close())
		}
	})
	return comms
}

// each runs f on all ranks at the same time.
func each(ranks int, f func(rank int) error) []error {
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for rank := range ranks {
		all.Go(func() { errs[rank] = f(rank) })
	}
	all.Wait()
	return errs
}

// placements are nodes by rank.
var placements = [][]int{{0, 0, 1}, {0, 1, 1}, {0, 0, 1, 1}, {0, 1, 1, 2, 2, 2}, {0, 0, 0, 0, 1, 2, 2, 2}}

// Random programs, in which two levels do all calls that they can, give the right results.
func TestTwoLevelPrograms(t *testing.T) {
	for seed, nodes := range append(placements, []int{0, 1, 0, 1}) {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			g := onNodes(t, time.Minute, nodes...)
			p := stress.New(uint64(seed), stress.Options{
				Ranks: len(nodes), Events: 150, Longest: []int{100, 20_000}[seed%2], Algorithms: []string{"direct", "ring", "tree"},
			})
			for _, err := range each(len(nodes), func(rank int) error { return p.Run(t.Context(), g[rank]) }) {
				require.NoError(t, err)
			}
		})
	}
}

// SplitLocal is the group of a node, and its first rank is the leader.
func TestLocalGroups(t *testing.T) {
	nodes := []int{0, 1, 1, 0, 2}
	g := onNodes(t, time.Minute, nodes...)
	places := []int{0, 0, 1, 1, 0}
	sizes := []int{2, 2, 2, 2, 1}
	for _, err := range each(len(nodes), func(rank int) error { return g[rank].SplitLocal().Barrier(t.Context()) }) {
		require.NoError(t, err)
	}
	for rank, c := range g {
		require.Equal(t, places[rank], c.SplitLocal().Rank())
		require.Equal(t, sizes[rank], c.SplitLocal().Size())
		require.Equal(t, places[rank] == 0, c.IsLeader())
	}
}

// A region exists once on each node. All ranks of a node fill it, or its leader does.
func TestRegionsOnNodes(t *testing.T) {
	for _, nodes := range append(placements, []int{0, 1, 0, 1}) {
		g := onNodes(t, time.Minute, nodes...)
		for _, err := range each(len(nodes), func(rank int) error {
			c, ctx := g[rank], t.Context()
			r, err := ccl.CreateSharedRegion[int64](ctx, c, 100)
			if err != nil {
				return err
			}
			for i := range r.BlockSlice() {
				r.BlockSlice()[i] = int64(nodes[rank] + 1)
			}
			if err := r.Fence(ctx); err != nil {
				return err
			}
			for i, x := range r.Slice() {
				if x != int64(nodes[rank]+1) {
					return fmt.Errorf("rank %d: element %d is %d", rank, i, x)
				}
			}
			if err := r.Fence(ctx); err != nil {
				return err
			}
			if s := r.LeaderSlice(); s != nil {
				s[7] = 70
			}
			if err := r.Fence(ctx); err != nil {
				return err
			}
			if r.Slice()[7] != 70 {
				return fmt.Errorf("rank %d: the leader's element is %d", rank, r.Slice()[7])
			}
			return r.Close()
		}) {
			require.NoError(t, err)
		}
	}
}

// Buffers of Alloc lie in the memory of the node.
func TestAllocOnNodes(t *testing.T) {
	for _, nodes := range [][]int{{0, 0, 1, 1}, {0, 1, 1}, {0, 1}, {0, 1, 0, 1}} {
		g := onNodes(t, time.Minute, nodes...)
		for _, err := range each(len(nodes), func(rank int) error {
			x, err := ccl.Alloc[float64](t.Context(), g[rank], 5000)
			if err != nil {
				return err
			}
			for i := range x {
				x[i] = float64(rank + i)
			}
			if err := ccl.AllReduce(t.Context(), g[rank], x, x, ccl.Sum); err != nil {
				return err
			}
			if by := g[rank].LastChoice().Entry; (by == "hierarchical") != (g[rank].Nodes() > 1) {
				return fmt.Errorf("rank %d: by %s on %d nodes", rank, by, g[rank].Nodes())
			}
			n := len(nodes)
			for i, got := range x {
				if want := float64(n*i + n*(n-1)/2); got != want {
					return fmt.Errorf("rank %d: %d: %v instead of %v", rank, i, got, want)
				}
			}
			return nil
		}) {
			require.NoError(t, err)
		}
	}
}

// What one node lacks, no rank gets, and the group lives on.
func TestNodeLacksMemory(t *testing.T) {
	g := onNodes(t, time.Minute, 0, 0, 1, 1)
	for _, err := range each(4, func(rank int) error {
		_, err := ccl.CreateSharedRegion[byte](t.Context(), g[rank], 1<<50)
		return err
	}) {
		_, ok := errors.AsType[*transport.AllocationFailedError](err)
		require.True(t, ok, "%v", err)
	}
	for _, err := range each(4, func(rank int) error { return g[rank].Barrier(t.Context()) }) {
		require.NoError(t, err)
	}
}

// gate is an operation that stops one rank in the middle of an all-reduce.
type gate struct {
	inside, open chan struct{}
	once         sync.Once
}

// openOnceAllFailed opens the gate once the group has failed on all ranks: then a receive ends that no rank sends to. The returned
// function waits for that.
func (g *gate) openOnceAllFailed(t *testing.T, comms []*ccl.Communicator) (wait func()) {
	var all sync.WaitGroup
	all.Go(func() {
		var receives []*ccl.Work
		for rank, c := range comms {
			receives = append(receives, ccl.Irecv(t.Context(), c, make([]int8, 1), (rank+1)%len(comms), 0, ccl.WithTimeout(-1)))
		}
		for _, r := range receives {
			<-r.Done()
		}
		close(g.open)
	})
	return all.Wait
}

var gates sync.Map // by the first element of the buffer

var gated = ccl.NewOp("gated", true, func(dst, a, b []int64) {
	for _, v := range [][]int64{a, b} {
		if at, ok := gates.Load(v[0]); ok {
			g := at.(*gate)
			g.once.Do(func() { close(g.inside) })
			<-g.open
		}
	}
	copy(dst, a)
})

// gatedLeaders is gated where the leaders of two nodes of two ranks reduce.
var gatedLeaders = ccl.NewOp("gated leaders", true, func(dst, a, b []int64) {
	if at, ok := gates.Load(max(a[0], b[0])); ok && max(a[0], b[0])-min(a[0], b[0]) == 2 {
		g := at.(*gate)
		g.once.Do(func() { close(g.inside) })
		<-g.open
	}
	copy(dst, a)
})

// A rank that gives up in the middle of a call ends it on all levels, and is named as a rank of the whole group.
func TestTwoLevelAbort(t *testing.T) {
	g := onNodes(t, time.Minute, 0, 0, 1, 1)
	stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
	gates.Store(int64(1003), stop) // the input of rank 3, which its leader reduces
	defer gates.Delete(int64(1003))
	mine := errors.New("the user pressed stop")
	var all sync.WaitGroup
	all.Go(func() {
		<-stop.inside
		g[3].Abort(mine)
		close(stop.open)
	})
	errs := each(4, func(rank int) error {
		x := make([]int64, 100)
		x[0] = int64(1000 + rank)
		return ccl.AllReduce(t.Context(), g[rank], x, x, gated)
	})
	all.Wait()
	for rank, err := range errs {
		aborted, ok := errors.AsType[*transport.AbortedError](err)
		require.True(t, ok, "rank %d: %v", rank, err)
		require.Equal(t, 3, aborted.By)
		require.ErrorContains(t, err, mine.Error())
	}
	for _, c := range g {
		require.Error(t, c.Err())
		require.ErrorIs(t, c.Barrier(t.Context()), ccl.ErrInvalidCommunicator)
	}
}

// A leader that dies in the middle of a call has its number in the whole group also in the text of the failure, which ranks get whose
// leader dies before it has passed on the failure itself.
func TestTwoLevelDeath(t *testing.T) {
	eps := packet.OnNodes(t, []int{0, 0, 1, 1})
	g := preferring(t, time.Minute, eps)
	stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
	gates.Store(int64(5003), stop) // the input of rank 3, which its leader reduces
	defer gates.Delete(int64(5003))
	wait := stop.openOnceAllFailed(t, g)
	go func() {
		<-stop.inside
		packet.NoticeDeath(eps[0], 2)
	}()
	errs := each(4, func(rank int) error {
		x := make([]int64, 100)
		x[0] = int64(5000 + rank)
		return ccl.AllReduce(t.Context(), g[rank], x, x, gated)
	})
	wait()
	for rank, err := range errs {
		lost, ok := errors.AsType[*transport.PeerLostError](err)
		require.True(t, ok, "rank %d: %v", rank, err)
		require.Equal(t, 2, lost.Rank)
	}
	require.Regexp(t, "^peer lost: rank 2 ", eps[0].Failure().Text)
}

// A rank that is stopped in the middle of a call is named after the timeout, on all nodes.
func TestTwoLevelStuck(t *testing.T) {
	t.Parallel()
	for _, stopped := range []int{2, 3, 1} {
		t.Run(fmt.Sprint("rank=", stopped), func(t *testing.T) {
			g := onNodes(t, 500*time.Millisecond, 0, 0, 1, 1)
			stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
			gates.Store(int64(1000+stopped), stop)
			defer gates.Delete(int64(1000 + stopped))
			wait := stop.openOnceAllFailed(t, g)
			errs := each(4, func(rank int) error {
				x := make([]int64, 100)
				x[0] = int64(1000 + rank)
				return ccl.AllReduce(t.Context(), g[rank], x, x, gated)
			})
			wait()
			node := []int{stopped &^ 1, stopped | 1}
			for rank, err := range errs {
				late, ok := errors.AsType[*transport.TimeoutError](err)
				require.True(t, ok, "rank %d: %v", rank, err)
				require.Subset(t, node, append(late.Missing, late.Behind...), "rank %d: %v", rank, err)
			}
		})
	}
}

// A leader that is stopped in the middle of a call, and whose process replies to nothing, is named by all others, however short the timeout
// is: its node's other ranks, and those of other nodes, which wait for their own leader, give up later than the leaders. With a long input it
// is stopped in a call of the leaders, which the other one leaves only later.
func TestTwoLevelStoppedLeader(t *testing.T) {
	for i, c := range []struct {
		stopped, elements int
		timeout           time.Duration
	}{{2, 100, 400 * time.Millisecond}, {0, 100, 400 * time.Millisecond}, {2, 100, 2 * time.Second}, {0, 100, 2 * time.Second}, {2, 8192, time.Second}, {0, 8192, time.Second}} {
		stopped, timeout := c.stopped, c.timeout
		t.Run(fmt.Sprint("rank=", stopped, ",elements=", c.elements, ",timeout=", timeout), func(t *testing.T) {
			t.Parallel()
			eps := packet.OnNodes(t, []int{0, 0, 1, 1})
			g := preferring(t, timeout, eps)
			stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
			first, isLong := int64(4000+16*i), c.elements > 100
			key := first + int64(stopped)
			if isLong {
				key = first + 2 // the higher leader
			}
			gates.Store(key, stop)
			defer gates.Delete(key)
			var others sync.WaitGroup
			others.Add(3)
			go func() {
				select {
				case <-stop.inside:
					defer packet.Stop(eps[stopped])()
					others.Wait()
					close(stop.open)
				case <-t.Context().Done():
				}
			}()
			for rank, err := range each(4, func(rank int) error {
				if rank != stopped {
					defer others.Done()
				}
				x, op := make([]int64, c.elements), gated
				if x[0] = first + int64(rank); isLong {
					op, x[0] = gatedLeaders, 0
					for i := range c.elements / 8 { // a leader reduces a half of each of the four pieces
						x[i+c.elements/16*stopped] = first + int64(rank)
					}
				}
				return ccl.AllReduce(t.Context(), g[rank], x, x, op)
			}) {
				if rank == stopped { // it may hear of the others' failures first
					require.Regexp(t, fmt.Sprintf("waited for rank %d[, ]", stopped), err.Error())
					continue
				}
				late, ok := errors.AsType[*transport.TimeoutError](err)
				require.True(t, ok, "rank %d: %v", rank, err)
				require.Equal(t, []int{stopped}, append(late.Missing, late.Behind...), "rank %d: %v", rank, err)
			}
		})
	}
}

// A context that ends in the middle of a call ends it on all ranks.
func TestTwoLevelCancel(t *testing.T) {
	g := onNodes(t, time.Minute, 0, 0, 1, 1)
	stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
	gates.Store(int64(1003), stop)
	defer gates.Delete(int64(1003))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		<-stop.inside
		cancel()
		close(stop.open)
	})
	errs := each(4, func(rank int) error {
		in := t.Context()
		if rank == 0 {
			in = ctx
		}
		x := make([]int64, 100)
		x[0] = int64(1000 + rank)
		err := ccl.AllReduce(in, g[rank], x, x, gated)
		if err == nil { // it was too late
			err = g[rank].Barrier(in)
		}
		return err
	})
	all.Wait()
	require.ErrorIs(t, errs[0], context.Canceled)
	for _, err := range errs[1:] {
		require.True(t, strings.Contains(err.Error(), "context canceled"), "%v", err)
	}
}

// laggard is the endpoint of a rank that fails its group only after another rank has.
type laggard struct {
	elsewhen
	armed  atomic.Bool
	behind chan struct{} // closed once it waits for that
}

func (l *laggard) Fail(f *transport.Failure) *transport.Failure {
	if l.armed.CompareAndSwap(true, false) {
		close(l.behind)
		for !l.Failed() {
			runtime.Gosched()
		}
	}
	return l.Endpoint.Fail(f)
}

var errOp = errors.New("it is not defined there")

var panicking = ccl.NewOp("panicking", true, func(dst, a, b []int64) {
	if v := max(a[0], b[0]); v == 3003 {
		at, _ := gates.Load(v)
		close(at.(*gate).inside)
		<-at.(*gate).open
		panic(errOp)
	}
	copy(dst, a)
})

// A rank's own error is the value itself, although another rank, which got it as text by a level, was the first to fail the group with
// it. A context that ends is a rank's own also where another rank fails the group for another reason.
func TestTwoLevelOwnErrors(t *testing.T) {
	elsewhere, aborted := &transport.PeerLostError{Rank: 3}, errors.New("the user pressed stop")
	for name, c := range map[string]struct {
		rank  int
		op    ccl.Op
		first int64
		abort bool    // by rank 3, before the others hear of the rank's failure
		wants []error // of the rank
	}{
		"context":               {0, gated, 2000, false, []error{context.Canceled, elsewhere}},
		"context, and an abort": {0, gated, 2000, true, []error{context.Canceled, elsewhere}},
		"panic":                 {1, panicking, 3000, false, []error{errOp}},
	} {
		t.Run(name, func(t *testing.T) {
			eps := packet.OnNodes(t, []int{0, 1, 1, 1}) // rank 0 is heard by the leader alone, which is in the operation
			late := &laggard{elsewhen: elsewhen{eps[c.rank], func(ctx context.Context) context.Context { return ctx }}, behind: make(chan struct{})}
			eps[c.rank] = late
			g := preferring(t, time.Minute, eps)
			stop := &gate{inside: make(chan struct{}), open: make(chan struct{})}
			gates.Store(c.first+3, stop) // the input of rank 3, which its leader reduces
			defer gates.Delete(c.first + 3)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var all sync.WaitGroup
			all.Go(func() {
				<-stop.inside
				late.armed.Store(true)
				if c.rank == 0 {
					cancel(elsewhere)
					<-late.behind
				}
				if c.abort {
					g[3].Abort(aborted)
				}
				close(stop.open)
			})
			errs := each(4, func(rank int) error {
				in := t.Context()
				if rank == 0 && c.rank == 0 {
					in = ctx
				}
				x := make([]int64, 100)
				x[0] = c.first + int64(rank)
				return ccl.AllReduce(in, g[rank], x, x, c.op)
			})
			all.Wait()
			for rank, err := range errs {
				gaveUp, ok := errors.AsType[*transport.AbortedError](err)
				switch {
				case c.abort:
					require.True(t, ok && gaveUp.By == 3, "rank %d: %v", rank, err)
					require.ErrorContains(t, err, aborted.Error())
				case rank == c.rank:
					require.False(t, ok, "rank %d: %v", rank, err)
				default:
					require.True(t, ok && gaveUp.By == c.rank, "rank %d: %v", rank, err)
					require.ErrorContains(t, err, c.wants[0].Error())
				}
			}
			for _, want := range c.wants {
				require.ErrorIs(t, errs[c.rank], want)
				if !c.abort {
					require.ErrorIs(t, g[c.rank].Err(), want)
					require.ErrorIs(t, g[c.rank].Barrier(t.Context()), want)
				}
			}
		})
	}
}
