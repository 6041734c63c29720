package main

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/examples/nn"
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
					losses := r.losses()
					require.Len(t, losses, len(want))
					for step, loss := range want[:50] {
						require.InEpsilon(t, loss, losses[step], 1e-4, "rank %d, step %d", rank, step)
					}
					require.InEpsilon(t, want[49], losses[49], 1e-9, "rank %d: rounding alone explains no more", rank)
				}
			})
		}
	}
}

// trainOnUnion is the oracle, without ranks and collectives: in every step one model
// trains on the union of the batches of all ranks.
func trainOnUnion(j options, ranks int, trainSet digits.Set[float64]) []float64 {
	model := newMLP[float64](j.layers, j.seed)
	part := (j.batch + ranks - 1) / ranks
	var losses []float64
	for epoch := 1; epoch <= j.epochs; epoch++ {
		var steps [][]int
		for rank := range ranks {
			shard := ddp.Sampler{Samples: trainSet.Len(), Ranks: ranks, Rank: rank, Seed: j.seed}.Indices(epoch)
			for step := 0; step*part < len(shard); step++ {
				if step == len(steps) {
					steps = append(steps, nil)
				}
				steps[step] = append(steps[step], shard[step*part:min(len(shard), (step+1)*part)]...)
			}
		}
		for _, union := range steps {
			loss, _ := model.loss(trainSet.Pick(union))
			losses = append(losses, loss)
			model.backward(func(int) {})
			model.step(j.rate, j.momentum)
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
				require.Equal(t, first[0].losses(), r.losses(), "rank %d", rank%ranks)
				require.Equal(t, first[0].checksum, r.checksum, "rank %d", rank%ranks)
				require.Positive(t, r.total.working)
				require.LessOrEqual(t, r.total.working, r.total.communicating, "of each step the least of all ranks")
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
			require.NotEqual(t, first[0].checksum, trainOn(t, ranks, other, trainSet, testSet)[0].checksum)
		})
	}
}

// More ranks than samples: most of them train on repeated samples, some test on
// none.
func TestMoreRanksThanSamples(t *testing.T) {
	trainSet, testSet := someDigits[float32](t, 5)
	for _, r := range trainOn(t, 7, smallJob(2), trainSet, testSet.Slice(0, 3)) {
		require.Equal(t, 7, r.epochs[0].samples)
		require.Contains(t, []float64{0, 1. / 3, 2. / 3, 1}, r.epochs[1].accuracy)
	}
}

// A training that diverged is an error on every rank.
func TestDiverges(t *testing.T) {
	trainSet, testSet := someDigits[float32](t, 50)
	j := smallJob(5)
	j.rate = 1e30
	_, err := tryTraining(2, j, trainSet, testSet)
	require.ErrorContains(t, err, "diverged")
}

// Ranks whose weights differ at the end are an error on every rank: here they learn at different rates.
func TestWeightsThatDiffer(t *testing.T) {
	trainSet, testSet := someDigits[float32](t, 50)
	errs := make([]error, 2)
	_ = dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		world, err := dist.Default()
		if err != nil {
			return err
		}
		j := smallJob(1)
		j.rate /= float64(1 + rank)
		_, errs[rank] = train(ctx, world, j, trainSet, testSet, report{out: io.Discard})
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(len(errs)))
	for rank, err := range errs {
		require.ErrorAs(t, err, new(*ccl.MismatchError), "rank %d", rank)
	}
}

// trainOn returns the results of all ranks.
func trainOn[F nn.Float](t *testing.T, ranks int, j options, trainSet, testSet digits.Set[F]) []*run {
	t.Helper()
	runs, err := tryTraining(ranks, j, trainSet, testSet)
	require.NoError(t, err)
	return runs
}

func tryTraining[F nn.Float](ranks int, j options, trainSet, testSet digits.Set[F]) ([]*run, error) {
	runs := make([]*run, ranks)
	return runs, dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", j.connect...); err != nil {
			return err
		}
		world, err := dist.Default()
		if err != nil {
			return err
		}
		if runs[rank], err = train(ctx, world, j, trainSet, testSet, report{out: io.Discard}); err != nil {
			return err
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(ranks))
}

// losses returns those of all steps.
func (r *run) losses() (all []float64) {
	for _, e := range r.epochs {
		all = append(all, e.losses...)
	}
	return all
}

// smallJob is large enough to learn, and small enough for the race detector.
// Its batches leave a shorter one at the end of an epoch.
func smallJob(epochs int) options {
	return options{layers: []int{digits.Pixels, 24, 16, digits.Classes}, epochs: epochs, batch: 28, rate: 0.05, momentum: 0.9, seed: 11}
}

// someDigits returns n digits to train on, and 30 others to test.
func someDigits[F nn.Float](t *testing.T, n int) (trainSet, testSet digits.Set[F]) {
	t.Helper()
	all, err := digits.Load[F]()
	require.NoError(t, err)
	return all.Slice(0, n), all.Slice(n, n+30)
}
