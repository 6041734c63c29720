package tree_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/tree"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/transport/local"
)

func TestConformance(t *testing.T) { ccltest.Test(t, tree.Algorithm) }

func FuzzKernels(f *testing.F) { ccltest.Fuzz(f, tree.Algorithm) }

// With small chunks every vector is a pipeline.
func TestConformanceSmallChunks(t *testing.T) {
	pipelines := of(tree.Algorithm, ccl.CollAllReduce, ccl.CollReduce, ccl.CollAllGather, ccl.CollExScan)
	ccltest.Test(t, pipelines, ccltest.Params("chunk: 64"))
}

func TestConformanceBinomial(t *testing.T) {
	trees := of(tree.Algorithm, ccl.CollAllReduce, ccl.CollAllGather, ccl.CollGather, ccl.CollScatter)
	ccltest.Test(t, trees, ccltest.Params("kind: binomial, chunk: 1KiB"))
}

func TestConformanceChain(t *testing.T) {
	ccltest.Test(t, of(tree.Algorithm, ccl.CollReduceScatter), ccltest.Params("arity: 1, chunk: 1KiB"))
}

func TestConformanceArity3(t *testing.T) {
	ccltest.Test(t, of(tree.Algorithm, ccl.CollAllGather, ccl.CollScatter), ccltest.Params("arity: 3, chunk: 1KiB"))
}

// of returns the algorithm with the kernels of some collectives, where parameters
// make no difference to the others.
func of(a *ccl.Algorithm, colls ...ccl.Collective) *ccl.Algorithm {
	selection := *a
	selection.Kernels = make(map[ccl.Collective]*ccl.Kernel)
	for _, coll := range colls {
		selection.Kernels[coll] = a.Kernels[coll]
	}
	return &selection
}

// The bits of an all-reduce are fixed by the number of ranks, the kind and the
// arity: a rank's input is reduced with its children's results, in ascending order.
func TestBits(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 7, 8, 13} {
		for _, count := range []int{1, 50, 1000} {
			in := make([][]float32, ranks)
			rnd := rand.New(rand.NewPCG(uint64(ranks), uint64(count)))
			for r := range in {
				for range count {
					in[r] = append(in[r], float32(rnd.NormFloat64()))
				}
			}
			add := func(x, y []float32) []float32 {
				sum := make([]float32, count)
				for i := range sum {
					sum[i] = x[i] + y[i]
				}
				return sum
			}
			// kary reduces the subtree of rank r, binomial the ranks r to r+n-1.
			var kary func(arity, r int) []float32
			kary = func(arity, r int) []float32 {
				x := in[r]
				for i := 1; i <= arity && arity*r+i < ranks; i++ {
					x = add(x, kary(arity, arity*r+i))
				}
				return x
			}
			var binomial func(r, n int) []float32
			binomial = func(r, n int) []float32 {
				x := in[r]
				for bit := 1; bit < n; bit *= 2 {
					x = add(x, binomial(r+bit, min(bit, n-bit)))
				}
				return x
			}
			for _, c := range []struct {
				params string
				want   []float32
			}{
				{"", kary(2, 0)},
				{"chunk: 64", kary(2, 0)},
				{"chunk: 1099511627776", kary(2, 0)}, // no arithmetic overflows
				{"arity: 1, chunk: 64", kary(1, 0)},
				{"arity: 3, chunk: 256", kary(3, 0)},
				{"arity: 1000000000", kary(ranks, 0)},
				{"kind: binomial", binomial(0, ranks)},
				{"kind: binomial, chunk: 64", binomial(0, ranks)},
			} {
				t.Run(fmt.Sprintf("ranks=%d/count=%d/%s", ranks, count, c.params), func(t *testing.T) {
					for _, got := range allReduce(t, c.params, in) {
						require.Equal(t, c.want, got)
					}
				})
			}
		}
	}
}

// The sums that the documentation shows.
func TestBitsOfTheDocumentation(t *testing.T) {
	var x []float32
	var in [][]float32
	for r := range 8 {
		x = append(x, 1/float32(3+r*r))
		in = append(in, x[r:r+1])
	}
	heap := (x[0] + ((x[1] + x[3]) + x[4])) + ((x[2] + x[5]) + x[6])
	require.Equal(t, heap, allReduce(t, "arity: 2", in[:7])[0][0])
	pairs := ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]))
	require.Equal(t, pairs, allReduce(t, "kind: binomial", in)[0][0])

	out := make([][3]float32, 8)
	onTree(t, "kind: binomial", 8, func(ctx context.Context, c *ccl.Communicator) error {
		r := c.Rank()
		if err := ccl.Scan(ctx, c, in[r], out[r][:1], ccl.Sum); err != nil {
			return err
		}
		if err := ccl.ExScan(ctx, c, in[r], out[r][1:2], ccl.Sum); err != nil {
			return err
		}
		if r != 3 {
			return ccl.Reduce(ctx, c, in[r], nil, ccl.Sum, 3)
		}
		return ccl.Reduce(ctx, c, in[r], out[r][2:], ccl.Sum, 3)
	})
	five := (x[0] + x[1]) + ((x[2] + x[3]) + (x[4] + x[5]))
	six := (x[0] + (x[1] + x[2])) + ((x[3] + x[4]) + (x[5] + x[6]))
	require.Equal(t, []float32{five, six}, []float32{out[5][0], out[6][0]})
	before6 := (x[0] + (x[1] + x[2])) + ((x[3] + x[4]) + x[5])
	before7 := ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + x[6])
	require.Equal(t, []float32{before6, before7}, []float32{out[6][1], out[7][1]})
	toRoot := ((x[3] + x[1]) + (x[2] + x[0])) + ((x[4] + x[5]) + (x[6] + x[7]))
	require.Equal(t, toRoot, out[3][2])
}

// allReduce sums the ranks' inputs by tree, and returns what each got.
func allReduce(t *testing.T, params string, in [][]float32) [][]float32 {
	out := make([][]float32, len(in))
	onTree(t, params, len(in), func(ctx context.Context, c *ccl.Communicator) error {
		out[c.Rank()] = make([]float32, len(in[c.Rank()]))
		return ccl.AllReduce(ctx, c, in[c.Rank()], out[c.Rank()], ccl.Sum)
	})
	return out
}

// onTree calls f on each of a number of ranks whose calls are done by tree.
func onTree(t *testing.T, params string, ranks int, f func(ctx context.Context, c *ccl.Communicator) error) {
	cfg, err := config.Parse("test", fmt.Appendf(nil,
		"version: 1\ndefaults: {algorithm: tree}\nalgorithms: {tree: {module: tree, params: {%s}}}\n", params))
	require.NoError(t, err)
	settings, err := cfg.Resolve(config.Request{Ranks: ranks})
	require.NoError(t, err)
	errs := make([]error, ranks)
	var wg sync.WaitGroup
	for r, ep := range local.New(ranks) {
		wg.Go(func() {
			c, err := ccl.New(context.Background(), ep, ccl.WithSelector(settings))
			if err != nil {
				errs[r] = err
				return
			}
			defer c.Close()
			errs[r] = f(context.Background(), c)
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestParams(t *testing.T) {
	require.NoError(t, tree.Algorithm.Params().(*tree.Params).Validate())
	for _, p := range []tree.Params{
		{tree.Kary, 1, 64}, {tree.Kary, 2, 1 << 40}, {tree.Kary, 1 << 30, 256}, {tree.Binomial, 2, 64},
	} {
		require.NoError(t, p.Validate(), "%+v", p)
	}
	for _, c := range []struct {
		params tree.Params
		says   string
	}{
		{tree.Params{"binary", 2, 64}, `kind is "binary", want kary or binomial`},
		{tree.Params{"", 2, 64}, `kind is "", want kary or binomial`},
		{tree.Params{tree.Kary, 0, 64}, "arity is 0, want at least 1"},
		{tree.Params{tree.Kary, -1, 64}, "arity is -1, want at least 1"},
		{tree.Params{tree.Binomial, 1, 64}, "arity is 1, but a binomial tree is made of pairs; remove arity, or choose kind kary"},
		{tree.Params{tree.Binomial, 3, 64}, "arity is 3, but a binomial tree is made of pairs; remove arity, or choose kind kary"},
		{tree.Params{tree.Kary, 2, 63}, "chunk is 63, want at least 64 bytes"},
		{tree.Params{tree.Binomial, 2, 0}, "chunk is 0, want at least 64 bytes"},
		{tree.Params{tree.Kary, 2, -1}, "chunk is -1, want at least 64 bytes"},
	} {
		require.EqualError(t, c.params.Validate(), c.says)
	}
}

func TestRegistered(t *testing.T) {
	got, ok := ccl.DefaultRegistry()["tree"]
	require.True(t, ok)
	require.Same(t, tree.Algorithm, got)
}
