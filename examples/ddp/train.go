package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// train is the work of one rank: every rank trains the same model on its
// own shard of the data, and averaging the gradients keeps the models
// equal, bit by bit. An error ends the rank without DestroyProcessGroup, so that the
// collectives of the other ranks fail instead of waiting.
func train[F float](ctx context.Context, j job, trainSet, testSet *dataset[F], watch watcher) (*result[F], error) {
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

	// Every rank has different random weights, and gets rank 0's. A bucket for each layer.
	model := newMLP[F](j.layers, j.seed+uint64(rank))
	reducer, err := ddp.New(ctx, group, model.parameters(), ddp.Options[F]{FirstBucketBytes: 1, BucketBytes: 1})
	if err != nil {
		return nil, err
	}
	model.setGradients(reducer.Grad)
	optimizer := sgd[F]{rate: F(j.rate), momentum: F(j.momentum)}
	loader := ddp.Loader[batch[F]]{
		Sampler: ddp.Sampler{Samples: trainSet.len(), Ranks: ranks, Rank: rank, Seed: j.seed},
		Batch:   j.perRank(ranks),
		Load:    trainSet.load,
	}

	done := &result[F]{weights: model.params}
	var collectives []time.Duration // how long this rank waited for each
	for number := 1; number <= j.epochs; number++ {
		var losses []F
		first := len(collectives)
		start := time.Now()
		for b, err := range loader.Epoch(ctx, number, 0) {
			if err != nil {
				return nil, err
			}
			losses = append(losses, model.loss(b.images, b.labels))
			model.backward(reducer.Ready) // a layer is averaged while those below are computed
			sent := time.Now()
			if err := reducer.Wait(ctx); err != nil {
				return nil, err
			}
			collectives = append(collectives, time.Since(sent))
			optimizer.step(model)
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
		e := epoch{number, loss, accuracy, loader.Sampler.Len() * ranks, elapsed, sum(collectives[first:])}
		if rank == 0 {
			watch.trained(e)
		}
		done.add(losses, e)
	}
	return done, done.compare(collectives)
}
