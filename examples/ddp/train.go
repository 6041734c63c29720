package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
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

// watcher follows the training on rank 0.
type watcher interface {
	connected(*dist.ProcessGroup)
	trained(epoch)
}

// train is the work of one rank: every rank trains the same model on its
// own shard of the data, and averaging the gradients keeps the models
// equal, bit by bit. An error ends the rank without DestroyProcessGroup, so that the
// collectives of the other ranks fail instead of waiting.
func train[F float](j job, trainSet, testSet *dataset[F], watch watcher) (*result[F], error) {
	if err := dist.InitProcessGroup("ccl", j.connect...); err != nil {
		return nil, err
	}
	group, err := dist.Default()
	if err != nil {
		return nil, err
	}
	rank, ranks := group.Rank(), group.Size()
	if rank == 0 {
		watch.connected(group)
	}

	// Ranks that are processes too average buffers of Alloc in place, without copies.
	grads, err := ccl.Alloc[F](context.Background(), group.Communicator(), parameters(j.layers))
	if err != nil {
		return nil, err
	}

	// Every rank has different random weights, and replaces them by rank 0's.
	model := newMLP(j.layers, grads, j.seed+uint64(rank))
	if err := dist.Broadcast(model.params, 0); err != nil {
		return nil, err
	}
	optimizer := sgd[F]{rate: F(j.rate), momentum: F(j.momentum)}
	shard := sampler{samples: trainSet.len(), ranks: ranks, rank: rank, seed: j.seed}

	done := &result[F]{weights: model.params}
	var collectives []time.Duration // how long this rank waited for each
	for number := 1; number <= j.epochs; number++ {
		var losses []F
		first := len(collectives)
		indices := shard.indices(number)
		start := time.Now()
		for step := range slices.Chunk(indices, j.perRank(ranks)) {
			losses = append(losses, model.loss(trainSet.batch(step)))

			// The gradients of a layer are averaged while the gradients of the layers below
			// are computed.
			var works []*dist.Work
			for grads := range model.backward() {
				work, err := dist.AllReduceAsync(grads, dist.Avg)
				if err != nil {
					return nil, err
				}
				works = append(works, work)
			}
			sent := time.Now()
			for _, work := range works {
				if err := work.Wait(context.Background()); err != nil {
					return nil, err
				}
			}
			collectives = append(collectives, time.Since(sent))

			optimizer.step(model.params, model.grads)
		}
		sent := time.Now()
		if err := dist.AllReduce(losses, dist.Avg); err != nil {
			return nil, err
		}
		collectives = append(collectives, time.Since(sent))
		elapsed := time.Since(start)

		loss := mean(losses)
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return nil, fmt.Errorf("the training diverged in epoch %d: the loss is %v; try a smaller learning rate than %v", number, loss, j.rate)
		}
		accuracy, err := test(model, testSet, rank, ranks)
		if err != nil {
			return nil, err
		}
		e := epoch{number, loss, accuracy, len(indices) * ranks, elapsed, sum(collectives[first:])}
		if rank == 0 {
			watch.trained(e)
		}
		done.losses = append(done.losses, losses...)
		done.epochs = append(done.epochs, e)
	}

	// The rank that comes last to a collective waits for no other rank: its wait is the
	// shortest.
	if err := dist.AllReduce(collectives, dist.Min); err != nil {
		return nil, err
	}
	done.working = sum(collectives)
	if done.digest, err = sameOnAllRanks(model.params); err != nil {
		return nil, err
	}
	if err := dist.Barrier(); err != nil {
		return nil, err
	}
	return done, dist.DestroyProcessGroup()
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
