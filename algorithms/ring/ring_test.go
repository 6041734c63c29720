package ring_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/ring"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/transport/local"
)

func TestConformance(t *testing.T) { ccltest.Test(t, ring.Algorithm) }

func FuzzKernels(f *testing.F) { ccltest.Fuzz(f, ring.Algorithm) }

// With small chunks vectors go around the ring many times.
func TestConformanceSmallChunks(t *testing.T) {
	pipelines := of(ring.Algorithm, ccl.CollAllReduce, ccl.CollReduce, ccl.CollReduceScatter,
		ccl.CollBroadcast, ccl.CollExScan)
	ccltest.Test(t, pipelines, ccltest.Params("chunk: 64"))
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

// The bits of an all-reduce are fixed by the number of ranks, the count and the
// chunk: block b of each part is reduced around the ring beginning at rank b.
func TestBits(t *testing.T) {
	for _, ranks := range []int{2, 3, 5, 8} {
		for _, chunk := range []int{64, 256, 4096} {
			for _, count := range []int{1, ranks, 50, 1000} {
				t.Run(fmt.Sprintf("ranks=%d/chunk=%d/count=%d", ranks, chunk, count), func(t *testing.T) {
					in := make([][]float32, ranks)
					rnd := rand.New(rand.NewPCG(uint64(ranks), uint64(count)))
					for r := range in {
						for range count {
							in[r] = append(in[r], float32(rnd.NormFloat64()))
						}
					}
					want := make([]float32, count)
					rounds := (4*count + ranks*chunk - 1) / (ranks * chunk)
					for round := range rounds {
						first, last := ccl.BlockRange(count, round, rounds)
						for b := range ranks {
							lo, hi := ccl.BlockRange(last-first, b, ranks)
							for i := first + lo; i < first+hi; i++ {
								for step := range ranks {
									if x := in[(b+step)%ranks][i]; step == 0 {
										want[i] = x
									} else {
										want[i] += x
									}
								}
							}
						}
					}
					for _, got := range allReduce(t, chunk, in) {
						require.Equal(t, want, got)
					}
				})
			}
		}
	}
}

// Other reductions also go along the ring: a reduce-scatter from the rank after the one
// that gets the block, a reduce from the one after the root, scans from rank 0.
func TestBitsOfTheOthers(t *testing.T) {
	const ranks, each, root = 5, 40, 2
	in := make([][]float32, ranks)
	rnd := rand.New(rand.NewPCG(1, 2))
	for r := range in {
		for range ranks * each {
			in[r] = append(in[r], float32(rnd.NormFloat64()))
		}
	}
	along := func(i, first, n int) float32 {
		x := in[first%ranks][i]
		for k := 1; k < n; k++ {
			x += in[(first+k)%ranks][i]
		}
		return x
	}
	check := func(what string, rank, from int, got []float32, first, n int) {
		for i := range got {
			assert.Equal(t, along(from+i, first, n), got[i], "%s, rank %d, element %d", what, rank, i)
		}
	}
	onRing(t, 64, ranks, func(ctx context.Context, c *ccl.Communicator) error {
		r := c.Rank()
		block, all := make([]float32, each), make([]float32, ranks*each)
		if err := ccl.ReduceScatter(ctx, c, in[r], block, ccl.Sum); err != nil {
			return err
		}
		check("reduce_scatter", r, r*each, block, r+1, ranks)
		var out []float32
		if r == root {
			out = all
		}
		if err := ccl.Reduce(ctx, c, in[r], out, ccl.Sum, root); err != nil {
			return err
		}
		check("reduce", r, 0, out, root+1, ranks)
		if err := ccl.Scan(ctx, c, in[r], all, ccl.Sum); err != nil {
			return err
		}
		check("scan", r, 0, all, 0, r+1)
		if err := ccl.ExScan(ctx, c, in[r], all, ccl.Sum); err != nil || r == 0 {
			return err
		}
		check("exscan", r, 0, all, 0, r)
		return nil
	})
}

// allReduce sums the ranks' inputs by ring, and returns what each got.
func allReduce(t *testing.T, chunk int, in [][]float32) [][]float32 {
	out := make([][]float32, len(in))
	onRing(t, chunk, len(in), func(ctx context.Context, c *ccl.Communicator) error {
		out[c.Rank()] = make([]float32, len(in[c.Rank()]))
		return ccl.AllReduce(ctx, c, in[c.Rank()], out[c.Rank()], ccl.Sum)
	})
	return out
}

// onRing calls f on each of a number of ranks whose calls are done by ring.
func onRing(t *testing.T, chunk, ranks int, f func(ctx context.Context, c *ccl.Communicator) error) {
	cfg, err := config.Parse("test", fmt.Appendf(nil,
		"version: 1\ndefaults: {algorithm: ring}\nalgorithms: {ring: {module: ring, params: {chunk: %d}}}\n", chunk))
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
	for chunk, ok := range map[ccl.ByteSize]bool{-1: false, 0: false, 63: false, 64: true, 1 << 30: true} {
		require.Equal(t, ok, (&ring.Params{Chunk: chunk}).Validate() == nil, "chunk %v", chunk)
	}
	require.NoError(t, ring.Algorithm.Params().(*ring.Params).Validate())
}

func TestRegistered(t *testing.T) {
	got, ok := ccl.DefaultRegistry()["ring"]
	require.True(t, ok)
	require.Same(t, ring.Algorithm, got)
}

// With the largest chunk that a configuration can have a vector goes around once, and no
// arithmetic overflows.
func TestLargestChunk(t *testing.T) {
	for _, got := range allReduce(t, 1<<40, [][]float32{{1, 2}, {3, 4}, {5, 6}, {7, 8}}) {
		require.Equal(t, []float32{16, 20}, got)
	}
}
