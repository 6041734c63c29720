package main

import (
	"time"

	"github.com/goccl/goccl/dist"
)

// job configures the training; it is the same on every rank.
type job struct {
	layers   []int // units per layer: pixels first, classes last
	epochs   int
	batch    int // samples per step of all ranks together, rounded up to a multiple of the ranks
	rate     float64
	momentum float64
	seed     uint64
	connect  []dist.InitOption
}

// perRank is the number of samples of each rank per step.
func (j job) perRank(ranks int) int { return (j.batch + ranks - 1) / ranks }

// epoch is the result of one pass over the training set.
type epoch struct {
	number        int           // from 1
	loss          float64       // mean over the epoch's steps, in nats
	accuracy      float64       // share of the test set classified correctly after the epoch
	samples       int           // trained on by all ranks together
	elapsed       time.Duration // without the test
	communicating time.Duration // the part of elapsed that this rank waited for collectives, slower ranks included
}

// result is the result of a training on one rank. The losses and the weights are the
// same on every rank.
type result[F float] struct {
	losses  []F // of every step, mean over all ranks
	epochs  []epoch
	working time.Duration // sum over all collectives of the shortest wait of any rank
	weights []F
	digest  digest // of the weights, proven equal on all ranks
}

// add adds an epoch.
func (r *result[F]) add(losses []F, e epoch) {
	r.losses = append(r.losses, losses...)
	r.epochs = append(r.epochs, e)
}

// compare compares the ranks' waits and weights, and leaves the group. The rank that comes last to a
// collective waits for no other rank: its wait is the shortest.
func (r *result[F]) compare(collectives []time.Duration) (err error) {
	if err := dist.AllReduce(collectives, dist.Min); err != nil {
		return err
	}
	r.working = sum(collectives)
	if r.digest, err = sameOnAllRanks(r.weights); err != nil {
		return err
	}
	if err := dist.Barrier(); err != nil {
		return err
	}
	return dist.DestroyProcessGroup()
}

// watcher follows the training on rank 0.
type watcher interface {
	connected(*dist.ProcessGroup)
	trained(epoch)
}

// test returns the share of the test set that the model classifies correctly. Every
// rank counts in its part of the set, and the counts are added.
func test[F float](model *mlp[F], set *dataset[F], rank, ranks int) (float64, error) {
	var mine []int
	for i := rank; i < set.len(); i += ranks {
		mine = append(mine, i)
	}
	count := []int64{int64(model.correct(set.batch(mine)))}
	if err := dist.AllReduce(count, dist.Sum); err != nil {
		return 0, err
	}
	return float64(count[0]) / float64(set.len()), nil
}

func sum(times []time.Duration) (all time.Duration) {
	for _, d := range times {
		all += d
	}
	return all
}

func mean[F float](values []F) float64 {
	var sum float64
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(len(values))
}
