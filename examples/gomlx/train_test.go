package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"
	mltrain "github.com/gomlx/gomlx/pkg/ml/train"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
)

// Ranks follow GoMLX alone on the same batches, although each starts with other weights: 84 samples a step, of
// 1344, are a multiple of each number of ranks, so that only the order of additions in float32 differs. The
// weights of all ranks have the same bits.
func TestFollowsOneRank(t *testing.T) {
	trainSet, testSet, err := digits.Sets[float32](1)
	require.NoError(t, err)
	trainSet = trainSet.Slice(0, 1344)
	for name, optimizer := range map[string]optimizers.Interface{
		"sgd":  optimizers.StochasticGradientDescent().WithLearningRate(0.2).WithDecay(false),
		"adam": optimizers.Adam().LearningRate(0.002).Done(),
	} {
		j := job{epochs: 2, batch: 84, seed: 7, optimizer: optimizer.(mltrain.OptimizeWithGradients)}
		want := trainAlone(t, j, optimizer, trainSet)
		require.Len(t, want, 32)
		require.Less(t, want[31], want[0]/2, "it learns")
		for _, ranks := range []int{1, 2, 3, 4, 7} {
			t.Run(fmt.Sprintf("%s/ranks=%d", name, ranks), func(t *testing.T) {
				all := make([]*result, ranks)
				require.NoError(t, dist.Spawn(func(ctx context.Context, rank int) (err error) {
					all[rank], err = train(ctx, j, trainSet, testSet, io.Discard)
					return err
				}, dist.WithRanks(ranks)))
				for rank, is := range all {
					require.InEpsilonSlice(t, want, is.losses, 1e-5, "rank %d", rank)
					require.Equal(t, all[0].weights, is.weights, "rank %d", rank)
				}
			})
		}
	}
}

// trainAlone is the oracle, without goccl: one graph of GoMLX trains on whole batches. It returns the losses.
func trainAlone(t *testing.T, j job, optimizer optimizers.Interface, trainSet digits.Set[float32]) (all []float32) {
	t.Helper()
	backend, err := simplego.New("ops_sequential")
	require.NoError(t, err)
	vars := mlctx.New()
	require.NoError(t, vars.SetRNGStateFromSeed(int64(j.seed)))
	step, err := mlctx.NewExec(backend, vars, func(vars *mlctx.Context, images, labels *graph.Node) *graph.Node {
		loss := lossOf(vars, images, labels)
		optimizer.UpdateGraph(vars, loss.Graph(), loss)
		return loss
	})
	require.NoError(t, err)
	for epoch := range j.epochs {
		order := ddp.Sampler{Samples: trainSet.Len(), Ranks: 1, Seed: j.seed}.Indices(epoch)
		for indices := range slices.Chunk(order, j.batch) {
			b := batchOf(trainSet.Pick(indices))
			loss, err := step.Exec1(b.images, b.labels)
			require.NoError(t, err)
			all = append(all, tensors.ToScalar[float32](loss))
		}
	}
	return all
}

// The first line says what computes, and the model learns.
func TestReport(t *testing.T) {
	var out strings.Builder
	adam := optimizers.Adam().LearningRate(0.002).Done().(mltrain.OptimizeWithGradients)
	require.NoError(t, run(&out, 2, job{epochs: 5, batch: 64, seed: 1, optimizer: adam}))
	require.Regexp(t, `^GoMLX v\d+\.\d+\.\d+, backend "go" \(pure Go\)
(epoch +\d: loss \d\.\d{4}\n){5}test accuracy: 0\.9\d{3}
weights: equal bit by bit on all ranks \(sha256 [0-9a-f]{16}\.\.\.\)\n$`, out.String())
}
