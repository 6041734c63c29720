package mpi_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/algorithms/mpi"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// The tests run the kernels over a transport that has collectives. test/mpi runs them on MPI.

func TestRegistered(t *testing.T) {
	got, ok := ccl.DefaultRegistry()["mpi"]
	require.True(t, ok)
	require.Same(t, mpi.Algorithm, got)
}

// onRanks runs f on n ranks.
func onRanks(t *testing.T, n int, wrap func(transport.Endpoint, *ccl.Communicator) transport.Endpoint, f func(c *ccl.Communicator) error) {
	t.Helper()
	outer, inner := local.New(n), local.New(n)
	errs := make([]error, n)
	var running sync.WaitGroup
	for r := range n {
		running.Go(func() {
			errs[r] = func() error {
				below, err := ccl.New(t.Context(), inner[r])
				if err != nil {
					return err
				}
				c, err := ccl.New(t.Context(), wrap(outer[r], below))
				if err != nil {
					return err
				}
				err = f(c)
				if err != nil {
					c.Abort(err)
					below.Abort(err)
				}
				return errors.Join(err, c.Close(), below.Close())
			}()
		})
	}
	running.Wait()
	require.NoError(t, errors.Join(errs...))
}

func withNative(ep transport.Endpoint, below *ccl.Communicator) transport.Endpoint {
	return &native{Endpoint: ep, inner: below}
}

// Every collective gives the result of the algorithm direct: of several types, in place and not, with blocks of equal and of other
// lengths, packed and not.
func TestLikeDirect(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint("ranks=", n), func(t *testing.T) {
			onRanks(t, n, withNative, func(c *ccl.Communicator) error {
				for seed := range uint64(40) {
					if err := errors.Join(
						like(c, seed, func(x int) int64 { return int64(x) }, ccl.Sum, ccl.Avg, ccl.Product, ccl.Min, ccl.Max, ccl.BAnd, ccl.BOr, ccl.BXor, ccl.PremulSum(3)),
						like(c, seed, func(x int) uint16 { return uint16(x) }, ccl.Product, ccl.BOr, ccl.BXor),
						like(c, seed, func(x int) int64 { return int64(x % 3) }, ccl.LAnd, ccl.LOr, ccl.LXor),
						like(c, seed, func(x int) bool { return x%3 == 0 }, ccl.Min, ccl.Max, ccl.BAnd, ccl.LAnd, ccl.LOr, ccl.LXor),
						like(c, seed, func(x int) float32 { return float32(x) }, ccl.Sum, ccl.Avg, ccl.Min, ccl.PremulSum(0.5)),
						like(c, seed, func(x int) complex128 { return complex(float64(x), 1) }, ccl.Sum, ccl.Product),
					); err != nil {
						return fmt.Errorf("seed %d: %w", seed, err)
					}
				}
				return nil
			})
		})
	}
}

// like makes each call by mpi and by direct, with inputs of this seed, and compares the results.
func like[T ccl.Element](c *ccl.Communicator, seed uint64, of func(int) T, ops ...ccl.Op) error {
	shared := rand.New(rand.NewPCG(seed, 0)) // the same on all ranks
	own := rand.New(rand.NewPCG(seed, uint64(c.Rank())+1))
	n, me, length, root := c.Size(), c.Rank(), 1+shared.IntN(20), shared.IntN(c.Size())
	o := ops[shared.IntN(len(ops))]
	isRoot := me == root
	vector := func(count int) []T {
		x := make([]T, count)
		for i := range x {
			x[i] = of(own.IntN(9) + 1)
		}
		return x
	}
	counts, matrix := make([]int, n), make([][]int, n)
	for r := range n {
		counts[r] = shared.IntN(5)
		for range n {
			matrix[r] = append(matrix[r], shared.IntN(4))
		}
	}
	counts[0]++
	total := sum(counts)
	displs, end := make([]int, n), 0 // in the opposite order, with gaps
	for r := n - 1; r >= 0; r-- {
		displs[r] = end + own.IntN(2)
		end = displs[r] + counts[r]
	}
	column := func(r int) (all []int) {
		for s := range n {
			all = append(all, matrix[s][r])
		}
		return all
	}
	inPlace := own.IntN(2) == 0
	type call struct {
		name string
		in   []T
		out  []T // nil: in place
		make func(in, out []T, by ccl.CallOption) error
	}
	out := func(count int) []T {
		if inPlace {
			return nil
		}
		return vector(count)
	}
	ofRoot := func(x []T) []T {
		if isRoot {
			return x
		}
		return nil
	}
	calls := []call{
		{"all_reduce", vector(length), out(length), func(in, out []T, by ccl.CallOption) error { return ccl.AllReduce(ctx, c, in, out, o, by) }},
		{"reduce", vector(length), out(length), func(in, out []T, by ccl.CallOption) error {
			return ccl.Reduce(ctx, c, in, ofRoot(out), o, root, by)
		}},
		{"reduce_scatter", vector(n * length), vector(length), func(in, out []T, by ccl.CallOption) error {
			if inPlace {
				out = in[me*length:][:length]
			}
			return ccl.ReduceScatter(ctx, c, in, out, o, by)
		}},
		{"reduce_scatter_v", vector(total), vector(counts[me]), func(in, out []T, by ccl.CallOption) error {
			return ccl.ReduceScatterV(ctx, c, in, out, o, counts, by)
		}},
		{"broadcast", vector(length), nil, func(in, _ []T, by ccl.CallOption) error { return ccl.Broadcast(ctx, c, in, root, by) }},
		{"all_gather", vector(length), vector(n * length), func(in, out []T, by ccl.CallOption) error {
			if inPlace {
				in = out[me*length:][:length]
			}
			return ccl.AllGather(ctx, c, in, out, by)
		}},
		{"all_gather_v", vector(counts[me]), vector(end + 1), func(in, out []T, by ccl.CallOption) error {
			return ccl.AllGatherV(ctx, c, in, out, counts, displs, by)
		}},
		{"gather", vector(length), vector(n * length), func(in, out []T, by ccl.CallOption) error {
			return ccl.Gather(ctx, c, in, ofRoot(out), root, by)
		}},
		{"gather_v", vector(counts[me]), vector(end + 1), func(in, out []T, by ccl.CallOption) error {
			if !isRoot {
				return ccl.GatherV(ctx, c, in, nil, nil, nil, root, by)
			}
			return ccl.GatherV(ctx, c, in, out, counts, displs, root, by)
		}},
		{"scatter", vector(n * length), vector(length), func(in, out []T, by ccl.CallOption) error {
			return ccl.Scatter(ctx, c, ofRoot(in), out, root, by)
		}},
		{"scatter_v", vector(total), vector(counts[me]), func(in, out []T, by ccl.CallOption) error {
			if !isRoot {
				return ccl.ScatterV(ctx, c, nil, nil, nil, out, root, by)
			}
			return ccl.ScatterV(ctx, c, in, counts, nil, out, root, by)
		}},
		{"all_to_all", vector(n * length), vector(n * length), func(in, out []T, by ccl.CallOption) error { return ccl.AllToAll(ctx, c, in, out, by) }},
		{"all_to_all_v", vector(sum(matrix[me])), vector(sum(column(me))), func(in, out []T, by ccl.CallOption) error {
			return ccl.AllToAllV(ctx, c, in, matrix[me], nil, out, column(me), nil, by)
		}},
	}
	if o != ccl.Avg {
		calls = append(calls,
			call{"scan", vector(length), out(length), func(in, out []T, by ccl.CallOption) error { return ccl.Scan(ctx, c, in, out, o, by) }},
			call{"exscan", vector(length), out(length), func(in, out []T, by ccl.CallOption) error { return ccl.ExScan(ctx, c, in, out, o, by) }})
	}
	for _, k := range calls {
		var results [2][]T
		for i, algorithm := range []string{"direct", "mpi"} {
			in, out := slices.Clone(k.in), slices.Clone(k.out)
			if k.out == nil {
				out = in
			}
			if err := k.make(in, out, ccl.WithAlgorithm(algorithm)); err != nil {
				return fmt.Errorf("%s by %s: %w", k.name, algorithm, err)
			}
			if c.LastChoice().Entry != algorithm {
				return fmt.Errorf("%s was made by %s", k.name, c.LastChoice().Entry)
			}
			results[i] = slices.Concat(in, out)
		}
		if !slices.Equal(results[0], results[1]) {
			return fmt.Errorf("%s (%v) of rank %d: %v, want %v", k.name, o, me, results[1], results[0])
		}
	}
	return nil
}

var leftmost = ccl.NewOp("mpi_test_leftmost", false, func(dst, a, _ []int64) { copy(dst, a) })

var sumAgain = ccl.NewOp("mpi_test_sum", true, func(dst, a, b []int64) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
})

// What MPI lacks is refused before data moves, and the group lives on.
func TestRefusals(t *testing.T) {
	onRanks(t, 2, withNative, func(c *ccl.Communicator) error {
		by := ccl.WithAlgorithm("mpi")
		h, ones := []half.Float16{half.NewFloat16(1)}, []int64{1}
		for says, err := range map[string]error{
			"MPI has no arithmetic for float16":                           ccl.AllReduce(ctx, c, h, h, ccl.Sum, by),
			"operation mpi_test_leftmost does not commute":                ccl.AllReduce(ctx, c, ones, ones, leftmost, by),
			"MPI does not know the operation mpi_test_sum":                ccl.AllReduce(ctx, c, ones, ones, sumAgain, by),
			"some MPI libraries compare unsigned integers as signed ones": ccl.AllReduce(ctx, c, []uint16{1}, []uint16{1}, ccl.Min, by),
			"some MPI libraries saturate sums of 8 and 16 bits":           ccl.AllReduce(ctx, c, []int8{1}, []int8{1}, ccl.Sum, by),
			"16 bits instead of wrapping them around":                     ccl.AllReduce(ctx, c, []int16{1}, []int16{1}, ccl.Avg, by),
		} {
			if !errors.Is(err, ccl.ErrNotImplemented) {
				return fmt.Errorf("%v, want %s", err, says)
			}
			require.ErrorContains(t, err, says)
		}
		if err := ccl.Broadcast(ctx, c, h, 0, by); err != nil {
			return err
		}
		return ccl.AllReduce(ctx, c, ones, ones, ccl.Sum, by)
	})
}

// A transport without collectives refuses every call, and the error says which one has some.
func TestTransportWithout(t *testing.T) {
	onRanks(t, 2, func(ep transport.Endpoint, _ *ccl.Communicator) transport.Endpoint { return ep }, func(c *ccl.Communicator) error {
		x := []int64{1}
		err := ccl.AllReduce(ctx, c, x, x, ccl.Sum, ccl.WithAlgorithm("mpi"))
		require.ErrorIs(t, err, ccl.ErrNotImplemented)
		require.ErrorContains(t, err, "by mpi: it needs a transport that has collectives of its own, as mpi has (chosen by option)")
		return ccl.AllReduce(ctx, c, x, x, ccl.Sum)
	})
}

// More elements than MPI counts are refused.
func TestCounts(t *testing.T) {
	most := math.MaxInt32
	for _, coll := range ccl.Collectives() {
		shape := ccl.Shape{Collective: coll, Ranks: 2, Bytes: 4 * (most + 1), Total: 4 * (most + 1), DType: ccl.Float32, Op: ccl.Sum, Native: true}
		require.ErrorContains(t, mpi.Algorithm.Supports(shape), "MPI counts at most 2147483647 elements, but the call has 2147483648", coll.String())
		shape.Bytes, shape.Total = 4*most, 4*most
		require.NoError(t, mpi.Algorithm.Supports(shape), coll.String())
	}
}
