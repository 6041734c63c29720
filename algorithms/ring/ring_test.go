package ring_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/ring"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/transport/local"
)

func TestConformance(t *testing.T) { ccltest.Test(t, ring.Algorithm) }

func FuzzKernels(f *testing.F) { ccltest.Fuzz(f, ring.Algorithm) }

// With small chunks vectors go around the ring many times.
func TestConformanceSmallChunks(t *testing.T) {
	ccltest.Test(t, ring.Algorithm, ccltest.Params("chunk: 64"))
}

// The bits of an all-reduce are fixed by the number of ranks, the count and the
// chunk: block b of each round is folded around the ring beginning at rank b (C21).
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
						first, last := ccl.Split(count, round, rounds)
						for b := range ranks {
							lo, hi := ccl.Split(last-first, b, ranks)
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

// allReduce sums the ranks' inputs by ring, and returns what each got.
func allReduce(t *testing.T, chunk int, in [][]float32) [][]float32 {
	config, err := ccl.ParseConfig("test", fmt.Appendf(nil,
		"version: 1\ndefaults: {algorithm: ring}\nalgorithms: {ring: {module: ring, params: {chunk: %d}}}\n", chunk))
	require.NoError(t, err)
	settings, err := config.Resolve(ccl.Request{Ranks: len(in)})
	require.NoError(t, err)
	out, errs := make([][]float32, len(in)), make([]error, len(in))
	var wg sync.WaitGroup
	for r, ep := range local.New(len(in)) {
		wg.Go(func() {
			c, err := ccl.New(context.Background(), ep, ccl.WithSettings(settings))
			if err != nil {
				errs[r] = err
				return
			}
			defer c.Close()
			out[r] = make([]float32, len(in[r]))
			errs[r] = ccl.AllReduce(context.Background(), c, in[r], out[r], ccl.Sum)
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return out
}

func TestParams(t *testing.T) {
	for chunk, ok := range map[ccl.ByteSize]bool{-1: false, 0: false, 63: false, 64: true, 1 << 30: true} {
		require.Equal(t, ok, (&ring.Params{Chunk: chunk}).Validate() == nil, "chunk %v", chunk)
	}
	require.NoError(t, ring.Algorithm.Params().(*ring.Params).Validate())
}

func TestRegistered(t *testing.T) {
	got, ok := ccl.DefaultRegistry().Lookup("ring")
	require.True(t, ok)
	require.Same(t, ring.Algorithm, got)
}

// The largest chunk that a configuration can ask for is one round, and no
// arithmetic overflows.
func TestLargestChunk(t *testing.T) {
	for _, got := range allReduce(t, 1<<40, [][]float32{{1, 2}, {3, 4}, {5, 6}, {7, 8}}) {
		require.Equal(t, []float32{16, 20}, got)
	}
}
