package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// Data-parallel training equals the training of one rank on the batches of all ranks:
// the average over the ranks of their mean gradients is the mean gradient
// of the union of their batches, since torch's DistributedSampler makes
// the parts equally large by repeating samples. In float64 only the order of additions
// makes a difference.
func TestEqualsOneRank(t *testing.T) {
	trainSet, testSet := someDigits[float64](t, 101) // a multiple of none of the rank counts: all of them pad
	for _, algorithm := range []string{"", "ring"} {
		for _, ranks := range []int{1, 2, 3, 4, 7} {
			t.Run(fmt.Sprintf("algorithm=%s/ranks=%d", algorithm, ranks), func(t *testing.T) {
				j := smallJob(13)
				if algorithm != "" {
					j.connect = []dist.InitOption{dist.WithAlgorithm(algorithm)}
				}
				want := trainOnUnion(j, ranks, trainSet)
				require.GreaterOrEqual(t, len(want), 50)
				require.Less(t, want[49], want[0]/2, "it learns")

				for rank, r := range trainOn(t, ranks, j, trainSet, testSet) {
					require.Len(t, r.losses, len(want))
					for step, loss := range want[:50] {
						require.InEpsilon(t, loss, r.losses[step], 1e-4, "rank %d, step %d", rank, step)
					}
					require.InEpsilon(t, want[49], r.losses[49], 1e-9, "rank %d: rounding alone explains no more", rank)
				}
			})
		}
	}
}

// trainOnUnion is the oracle, without ranks and collectives: in every step one model
// trains on the union of the batches of all ranks.
func trainOnUnion(j job, ranks int, trainSet *dataset[float64]) []float64 {
	model := newModel[float64](j.layers, j.seed)
	optimizer := sgd[float64]{rate: j.rate, momentum: j.momentum}
	part := (j.batch + ranks - 1) / ranks
	var losses []float64
	for epoch := 1; epoch <= j.epochs; epoch++ {
		var steps [][]int
		for rank := range ranks {
			shard := ddp.Sampler{Samples: trainSet.len(), Ranks: ranks, Rank: rank, Seed: j.seed}.Indices(epoch)
			for step := 0; step*part < len(shard); step++ {
				if step == len(steps) {
					steps = append(steps, nil)
				}
				steps[step] = append(steps[step], shard[step*part:min(len(shard), (step+1)*part)]...)
			}
		}
		for _, union := range steps {
			losses = append(losses, model.loss(trainSet.batch(union)))
			model.backward(func(int) {})
			optimizer.step(model)
		}
	}
	return losses
}

// Ranks agree on every bit of the weights and of the results, although
// each starts with different weights; and a second run repeats the first.
func TestSameBits(t *testing.T) {
	trainSet, testSet := someDigits[float32](t, 101)
	for _, ranks := range []int{1, 2, 3, 4, 7, 16} {
		t.Run(fmt.Sprintf("ranks=%d", ranks), func(t *testing.T) {
			first := trainOn(t, ranks, smallJob(3), trainSet, testSet)
			again := trainOn(t, ranks, smallJob(3), trainSet, testSet)
			for rank, r := range append(first, again...) {
				require.Equal(t, bits(first[0].weights), bits(r.weights), "rank %d", rank%ranks)
				require.Equal(t, bits(first[0].losses), bits(r.losses), "rank %d", rank%ranks)
				require.Equal(t, first[0].digest, r.digest)
				require.Positive(t, r.working)
				require.LessOrEqual(t, r.working, total(r.epochs).communicating, "of each collective the least of all ranks")
				for i, e := range r.epochs {
					require.Equal(t, i+1, e.number)
					require.Equal(t, first[0].epochs[i].accuracy, e.accuracy)
					require.Equal(t, first[0].epochs[i].samples, e.samples)
					require.Positive(t, e.elapsed)
					require.LessOrEqual(t, e.communicating, e.elapsed)
				}
			}
			other := smallJob(3)
			other.seed++
			require.NotEqual(t, first[0].digest, trainOn(t, ranks, other, trainSet, testSet)[0].digest)
		})
	}
}

// More ranks than samples: most of them train on repeated samples, some test on
// none.
func TestMoreRanksThanSamples(t *testing.T) {
	trainSet, testSet := someDigits[float32](t, 5)
	for _, r := range trainOn(t, 7, smallJob(2), trainSet, testSet.pick([]int{0, 1, 2})) {
		require.Equal(t, 7, r.epochs[0].samples)
		require.Contains(t, []float64{0, 1. / 3, 2. / 3, 1}, r.epochs[1].accuracy)
	}
}

// A training that diverged is an error on every rank.
func TestDiverges(t *testing.T) {
	trainSet, testSet := someDigits[float32](t, 50)
	j := smallJob(5)
	j.rate = 1e30
	err := dist.Spawn(func(ctx context.Context, _ int) error {
		_, err := train(ctx, j, trainSet, testSet, silent{})
		return err
	}, dist.WithRanks(2))
	require.ErrorContains(t, err, "diverged")
}

// One flipped bit on one rank is an error on all of them.
func TestSameOnAllRanksNotices(t *testing.T) {
	const ranks = 3
	var errs [ranks]error
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		weights := []float32{1, 2, 3}
		if rank == 1 {
			weights[2] = math.Nextafter32(3, 4)
		}
		_, errs[rank] = sameOnAllRanks(weights)
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(ranks))
	require.NoError(t, err)
	for _, err := range errs {
		require.ErrorContains(t, err, "weights differ")
	}
}

// trainOn returns the results of all ranks.
func trainOn[F float](t *testing.T, ranks int, j job, trainSet, testSet *dataset[F]) []*result[F] {
	t.Helper()
	results := make([]*result[F], ranks)
	err := dist.Spawn(func(ctx context.Context, rank int) (err error) {
		results[rank], err = train(ctx, j, trainSet, testSet, silent{})
		return err
	}, dist.WithRanks(ranks))
	require.NoError(t, err)
	return results
}

// smallJob is large enough to learn, and small enough for the race detector.
// Its batches leave a shorter one at the end of an epoch.
func smallJob(epochs int) job {
	return job{layers: []int{pixels, 24, 16, classes}, epochs: epochs, batch: 28, rate: 0.05, momentum: 0.9, seed: 11}
}

// someDigits returns n digits to train on, and 30 others to test.
func someDigits[F float](t *testing.T, n int) (trainSet, testSet *dataset[F]) {
	t.Helper()
	d, err := loadDigits[F]()
	require.NoError(t, err)
	all := make([]int, n+30)
	for i := range all {
		all[i] = i
	}
	return d.pick(all[:n]), d.pick(all[n:])
}

// silent is a watcher that ignores the training.
type silent struct{}

func (silent) connected(*dist.ProcessGroup) {}
func (silent) trained(epoch)                {}

// bits returns the bits of floats, so that their equality is exact.
func bits(values []float32) []uint32 {
	b := make([]uint32, 0, len(values))
	for v := range slices.Values(values) {
		b = append(b, math.Float32bits(v))
	}
	return b
}
