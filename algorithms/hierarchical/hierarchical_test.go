package hierarchical_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/algorithms/hierarchical"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/half"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// The tests run the kernels on goroutines that stand in for ranks on nodes. Those of transport/mpi run them over
// packets, with failures, and test/mpi on MPI.

func TestRegistered(t *testing.T) {
	got, ok := ccl.DefaultRegistry()["hierarchical"]
	require.True(t, ok)
	require.Same(t, hierarchical.Algorithm, got)
}

// machine is the nodes that goroutine ranks stand on.
type machine struct {
	nodes []int // by rank

	mu     sync.Mutex
	levels []transport.Endpoint
}

// placed is the endpoint of a rank on a node.
type placed struct {
	transport.Endpoint
	on *machine
}

func (p placed) Nodes() []int         { return p.on.nodes }
func (p placed) Host(int) string      { return "" }
func (p placed) Culprit(rank int) int { return rank }

func (p placed) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return p.Endpoint.(transport.Groups).Group(ctx, number, members)
}

func (p placed) Level(ctx context.Context, members []int) (transport.Endpoint, error) {
	number := uint64(1) << 62 // of a node; no call makes that many
	if p.on.nodes[members[0]] != p.on.nodes[members[len(members)-1]] {
		number++ // of leaders
	}
	level, err := p.Group(ctx, number, members)
	if err == nil {
		p.on.mu.Lock()
		defer p.on.mu.Unlock()
		p.on.levels = append(p.on.levels, level)
	}
	return level, err
}

func (p placed) Fail(f *transport.Failure) *transport.Failure {
	f = p.Endpoint.Fail(f)
	p.on.mu.Lock()
	defer p.on.mu.Unlock()
	for _, level := range p.on.levels {
		level.Fail(&transport.Failure{Kind: transport.FailureAborted, By: level.Rank(), Text: "the group has failed"})
	}
	return f
}

// onNodes returns the communicators of ranks on nodes with these numbers, by rank. All that can be is done by two levels. The
// test closes them.
func onNodes(t *testing.T, nodes ...int) []*ccl.Communicator {
	return connect(t, preferred, ccl.DefaultRegistry(), nodes...)
}

func connect(t *testing.T, file string, algorithms ccl.Registry, nodes ...int) []*ccl.Communicator {
	c, err := config.Parse("ccl.yaml", []byte(file))
	require.NoError(t, err)
	settings, err := c.Resolve(config.Request{Ranks: len(nodes), Registry: algorithms})
	require.NoError(t, err)
	comms := make([]*ccl.Communicator, len(nodes))
	on := &machine{nodes: nodes}
	eps := local.New(len(nodes))
	for _, err := range each(comms, func(rank int) (err error) {
		comms[rank], err = ccl.New(t.Context(), placed{eps[rank], on}, ccl.WithSelector(settings))
		return err
	}) {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, c := range comms {
			require.NoError(t, c.Close())
		}
	})
	return comms
}

// preferred chooses hierarchical wherever it can, and short pieces.
const preferred = `version: 1
algorithms: {direct: {module: direct}, hierarchical: {module: hierarchical, params: {chunk: 64}}}
rules: [{nodes: "2-", algorithm: hierarchical}, {algorithm: direct}]
`

// each runs f on all ranks at the same time. A rank whose f fails aborts the group, so that the others end too.
func each(g []*ccl.Communicator, f func(rank int) error) []error {
	errs := make([]error, len(g))
	var all sync.WaitGroup
	for rank := range g {
		all.Go(func() {
			if errs[rank] = f(rank); errs[rank] != nil && g[rank] != nil {
				g[rank].Abort(errs[rank])
			}
		})
	}
	all.Wait()
	return errs
}

// placements are nodes by rank.
var placements = [][]int{{0, 0, 1}, {0, 1, 1}, {0, 0, 1, 1}, {0, 1, 1, 2, 2, 2}, {0, 0, 0, 0, 1, 2, 2, 2}}

// affine is the composition of functions x*A+B modulo 2^32, which does not commute.
var affine = ccl.NewOp("affine", false, affineRun)

func affineRun(dst, a, b []int64) {
	for i := range dst {
		x, y := uint64(a[i]), uint64(b[i])
		dst[i] = int64(uint64(uint32(x>>32)*uint32(y>>32))<<32 | uint64(uint32(x)*uint32(y>>32)+uint32(y)))
	}
}

// All five collectives, of all roots, in place and not, with an operation that does not commute.
func TestTwoLevels(t *testing.T) {
	for _, nodes := range placements {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			ranks := len(nodes)
			g := onNodes(t, nodes...)
			const each3 = 3
			of := func(rank, n int) []int64 {
				v := make([]int64, n)
				for i := range v {
					v[i] = int64(rank+2)<<32 | int64(7*i+rank)
				}
				return v
			}
			total := of(0, ranks*each3)
			for rank := 1; rank < ranks; rank++ {
				affineRun(total, total, of(rank, len(total)))
			}
			counts, displs, gathered := make([]int, ranks), make([]int, ranks), []int64{}
			for rank := range ranks {
				counts[rank] = (rank * 5) % 4 // the first has nothing
				displs[rank] = 4 * (ranks - 1 - rank)
				gathered = append(gathered, of(rank, counts[rank])...)
			}
			errs := each(g, func(rank int) error {
				c, ctx := g[rank], t.Context()
				check := func(what string, err error, want, got []int64) error {
					if err != nil {
						return fmt.Errorf("%s: %w", what, err)
					}
					if fmt.Sprint(want) != fmt.Sprint(got) {
						return fmt.Errorf("rank %d: %s: %v instead of %v", rank, what, got, want)
					}
					return nil
				}
				var errs []error
				send, recv := of(rank, len(total)), make([]int64, len(total))
				errs = append(errs, check("all_reduce", ccl.AllReduce(ctx, c, send, recv, affine), total, recv))
				if by := c.LastChoice().Entry; by != "hierarchical" {
					errs = append(errs, fmt.Errorf("all_reduce by %s", by))
				}
				errs = append(errs, check("all_reduce in place", ccl.AllReduce(ctx, c, send, send, affine), total, send))
				for root := range ranks {
					send, recv, want := of(rank, len(total)), []int64(nil), []int64(nil)
					if rank == root {
						recv, want = make([]int64, len(total)), total
					}
					errs = append(errs, check("reduce", ccl.Reduce(ctx, c, send, recv, affine, root), want, recv))
					errs = append(errs, check("reduce's input", nil, of(rank, len(total)), send))
					buf := of(rank, 9)
					errs = append(errs, check("broadcast", ccl.Broadcast(ctx, c, buf, root), of(root, 9), buf))
				}
				recv = make([]int64, each3)
				errs = append(errs, check("reduce_scatter", ccl.ReduceScatter(ctx, c, of(rank, len(total)), recv, affine), total[each3*rank:each3*(rank+1)], recv))
				all := make([]int64, len(gathered))
				errs = append(errs, check("all_gather_v", ccl.AllGatherV(ctx, c, of(rank, counts[rank]), all, counts, nil), gathered, all))
				apart, want := make([]int64, 4*ranks), make([]int64, 4*ranks)
				for r := range ranks {
					copy(want[displs[r]:], of(r, counts[r]))
				}
				errs = append(errs, check("all_gather_v with gaps", ccl.AllGatherV(ctx, c, of(rank, counts[rank]), apart, counts, displs), want, apart))
				return errors.Join(errs...)
			})
			for _, err := range errs {
				require.NoError(t, err)
			}
		})
	}
}

// A kernel that panics beside the calls of a node, or ends that goroutine, fails the call on all ranks.
func TestOverlapThatPanics(t *testing.T) {
	const file = `version: 1
algorithms: {direct: {module: direct}, custom: {module: custom}}
rules: [{nodes: "2-", algorithm: custom}, {algorithm: direct}]
`
	for name, c := range map[string]struct {
		onLeaders func() error
		text      string
	}{
		"panic": {func() error { panic("boom") }, "kernel custom all_reduce panicked at hierarchical_test.go:"},
		"nil":   {nil, "kernel custom all_reduce panicked"},
		"end":   {func() error { runtime.Goexit(); return nil }, "ended its goroutine by runtime.Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			algorithms := ccl.DefaultRegistry()
			algorithms["custom"] = &ccl.Algorithm{Name: "custom", Doc: "of a test", Kernels: map[ccl.Collective]*ccl.Kernel{ccl.CollAllReduce: {
				Doc: "of a test", Cost: func(ccl.Shape) ccl.Cost { return ccl.Cost{} }, TwoLevels: true, Ordered: true,
				Run: func(call *ccl.Call) error {
					onNode := func() error { return call.Node().Broadcast(call.Out(), 0) }
					if call.Rank() != 2 {
						return onNode()
					}
					return call.Overlap(c.onLeaders, onNode)
				},
			}}}
			g := connect(t, file, algorithms, 0, 0, 1, 1)
			returned := make([]bool, len(g))
			errs := each(g, func(rank int) error {
				x := make([]int64, 10)
				if err := ccl.AllReduce(t.Context(), g[rank], x, x, ccl.Sum); err != nil {
					returned[rank] = true
					return err
				}
				err := g[rank].Barrier(t.Context())
				returned[rank] = true
				return err
			})
			for rank, err := range errs {
				require.Equal(t, name != "end" || rank != 2, returned[rank], "rank %d", rank)
				if returned[rank] {
					require.ErrorContains(t, err, c.text, "rank %d", rank)
				}
			}
		})
	}
}

// An average is divided once, by the number of all ranks, in every reduction.
func TestTwoLevelAverage(t *testing.T) {
	g := onNodes(t, 0, 0, 1)
	for rank, err := range each(g, func(rank int) error {
		x, part := []float32{float32(3 * rank), 6, 9}, make([]float32, 1)
		want := []float32{3, 6, 9}
		if err := ccl.ReduceScatter(t.Context(), g[rank], x, part, ccl.Avg); err != nil || part[0] != want[rank] {
			return fmt.Errorf("reduce_scatter: %v, %w", part, err)
		}
		for root := range 3 {
			var all []float32
			if rank == root {
				all = make([]float32, 3)
			}
			if err := ccl.Reduce(t.Context(), g[rank], x, all, ccl.Avg, root); err != nil || rank == root && !slices.Equal(all, want) {
				return fmt.Errorf("reduce: %v, %w", all, err)
			}
		}
		if err := ccl.AllReduce(t.Context(), g[rank], x, x, ccl.Avg); err != nil || !slices.Equal(x, want) {
			return fmt.Errorf("all_reduce: %v, %w", x, err)
		}
		return nil
	}) {
		require.NoError(t, err, "rank %d", rank)
	}
}

// A mean of float16 is right on both levels although its sum is not a float16.
func TestTwoLevelMeansOfHalves(t *testing.T) {
	g := onNodes(t, 0, 0, 1, 1)
	for rank, err := range each(g, func(rank int) error {
		x, want, part := make([]half.Float16, 4000), half.NewFloat16(65504), make([]half.Float16, 1000)
		for i := range x {
			x[i] = want
		}
		check := func(what string, err error, got []half.Float16) error {
			for _, x := range got {
				if x != want {
					return fmt.Errorf("%s: %v", what, x)
				}
			}
			if by := g[rank].LastChoice().Entry; by != "hierarchical" {
				return fmt.Errorf("%s by %s", what, by)
			}
			return err
		}
		errs := []error{check("reduce_scatter", ccl.ReduceScatter(t.Context(), g[rank], x, part, ccl.Avg), part)}
		for root := range 4 {
			all := make([]half.Float16, len(x))
			if rank != root {
				all = nil
			}
			errs = append(errs, check("reduce", ccl.Reduce(t.Context(), g[rank], x, all, ccl.Avg, root), all))
		}
		return errors.Join(append(errs, check("all_reduce", ccl.AllReduce(t.Context(), g[rank], x, x, ccl.Avg), x))...)
	}) {
		require.NoError(t, err, "rank %d", rank)
	}
}

// Blocks may be empty on all ranks of a node.
func TestEmptyBlocksOfANode(t *testing.T) {
	for _, counts := range [][]int{{0, 0, 2, 1}, {3, 1, 0, 0}, {0, 2, 0, 0}, {0, 0, 0, 5}} {
		g := onNodes(t, 0, 0, 1, 1)
		for _, err := range each(g, func(rank int) error {
			total := 0
			for _, n := range counts {
				total += n
			}
			send, recv := make([]int64, counts[rank]), make([]int64, total)
			for i := range send {
				send[i] = int64(rank + 1)
			}
			if err := ccl.AllGatherV(t.Context(), g[rank], send, recv, counts, nil); err != nil {
				return err
			}
			if by := g[rank].LastChoice().Entry; by != "hierarchical" {
				return fmt.Errorf("all_gather by %s", by)
			}
			var want []int64
			for r, n := range counts {
				for range n {
					want = append(want, int64(r+1))
				}
			}
			if fmt.Sprint(recv) != fmt.Sprint(want) {
				return fmt.Errorf("rank %d: %v instead of %v", rank, recv, want)
			}
			ones := make([]int64, total)
			for i := range ones {
				ones[i] = int64(i)
			}
			part, at := make([]int64, counts[rank]), 0
			if err := ccl.ReduceScatterV(t.Context(), g[rank], ones, part, ccl.Sum, counts); err != nil {
				return err
			}
			for _, n := range counts[:rank] {
				at += n
			}
			for i, x := range part {
				if x != int64(4*(at+i)) {
					return fmt.Errorf("rank %d: reduce_scatter: %v", rank, part)
				}
			}
			return nil
		}) {
			require.NoError(t, err)
		}
	}
}

// Without two levels calls are as before, and hierarchical says why it is not for them.
func TestOneLevel(t *testing.T) {
	for _, nodes := range [][]int{{0, 0, 0}, {0, 1, 2}, {0, 1, 0, 1}} {
		g := onNodes(t, nodes...)
		for _, err := range each(g, func(rank int) error {
			x := []int32{1}
			if err := ccl.AllReduce(t.Context(), g[rank], x, x, ccl.Sum); err != nil || x[0] != int32(len(nodes)) {
				return fmt.Errorf("%v: %w", x, err)
			}
			return nil
		}) {
			require.NoError(t, err)
		}
		require.Equal(t, "direct", g[0].LastChoice().Entry)
		shape := ccl.Shape{Collective: ccl.CollAllReduce, Ranks: len(nodes), Nodes: 1, Bytes: 4, Total: 4, DType: ccl.Int32}
		require.ErrorContains(t, hierarchical.Algorithm.Supports(shape), "the ranks are on one node")
	}
}
