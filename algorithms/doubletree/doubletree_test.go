package doubletree_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/doubletree"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport/local"
)

// With small chunks both halves of every vector are pipelines.
func TestConformance(t *testing.T) {
	ccltest.Test(t, doubletree.Algorithm, ccltest.Params("chunk: 64"))
}

func FuzzKernels(f *testing.F) { ccltest.Fuzz(f, doubletree.Algorithm) }

// The bits of an all-reduce are fixed by the number of ranks and the half that an
// element is in: a rank's input is reduced with its children's results, first with the
// child whose steps on the way up are earlier.
func TestBits(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 7, 8, 13} {
		two := topology.NewTwoTrees(ranks, 0)
		for _, count := range []int{1, 50, 1001} {
			in := make([][]float32, ranks)
			rnd := rand.New(rand.NewPCG(uint64(ranks), uint64(count)))
			for r := range in {
				for range count {
					in[r] = append(in[r], float32(rnd.NormFloat64()))
				}
			}
			var reduced func(tree, rank, i int) float32
			reduced = func(tree, rank, i int) float32 {
				x := in[rank][i]
				var children []int
				for k := range two.Degree(tree, rank) {
					children = append(children, two.Child(tree, rank, k))
				}
				if len(children) == 2 && two.Step(tree, children[0]) < two.Step(tree, children[1]) {
					children[0], children[1] = children[1], children[0] // up is down backwards
				}
				for _, child := range children {
					x += reduced(tree, child, i)
				}
				return x
			}
			want := make([]float32, count)
			for i := range want {
				tree := 0
				if i >= count-count/2 {
					tree = 1
				}
				want[i] = reduced(tree, 0, i)
			}
			for _, chunk := range []int{64, 256, 1 << 40} { // no arithmetic overflows
				t.Run(fmt.Sprintf("ranks=%d/count=%d/chunk=%d", ranks, count, chunk), func(t *testing.T) {
					for _, got := range allReduce(t, chunk, in) {
						require.Equal(t, want, got)
					}
				})
			}
		}
	}
}

// allReduce sums the ranks' inputs by doubletree, and returns what each got.
func allReduce(t *testing.T, chunk int, in [][]float32) [][]float32 {
	cfg, err := config.Parse("test", fmt.Appendf(nil,
		"version: 1\ndefaults: {algorithm: two}\nalgorithms: {two: {module: doubletree, params: {chunk: %d}}}\n", chunk))
	require.NoError(t, err)
	settings, err := cfg.Resolve(config.Request{Ranks: len(in)})
	require.NoError(t, err)
	out, errs := make([][]float32, len(in)), make([]error, len(in))
	var wg sync.WaitGroup
	for r, ep := range local.New(len(in)) {
		wg.Go(func() {
			c, err := ccl.New(context.Background(), ep, ccl.WithSelector(settings))
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
		require.Equal(t, ok, (&doubletree.Params{Chunk: chunk}).Validate() == nil, "chunk %v", chunk)
	}
	require.NoError(t, doubletree.Algorithm.Params().(*doubletree.Params).Validate())
}

func TestRegistered(t *testing.T) {
	got, ok := ccl.DefaultRegistry()["doubletree"]
	require.True(t, ok)
	require.Same(t, doubletree.Algorithm, got)
}
