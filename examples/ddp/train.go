package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/examples/nn"
)

// train is the work of one rank: every rank trains the same model on its own part of the data, and
// averaging the gradients keeps the models equal, bit by bit.
func train[F nn.Float](ctx context.Context, group *dist.ProcessGroup, o options, trainSet, testSet digits.Set[F], r report) (*run, error) {
	rank, ranks := group.Rank(), group.Size()

	// Every rank has different random weights, and gets rank 0's. A bucket for each layer.
	model := newMLP[F](o.layers, o.seed+uint64(rank))
	reducer, err := ddp.New(ctx, group, model.parameters(), ddp.Options{
		FirstBucketBytes: 1, BucketBytes: 1, KeepCheckpoints: 2, LogicalShards: o.shards,
	})
	if err != nil {
		return nil, err
	}

	shards := cmp.Or(o.shards, ranks)
	loader := ddp.Loader[digits.Set[F]]{
		Sampler: ddp.Sampler{Samples: trainSet.Len(), Ranks: ranks, Rank: rank, Shards: o.shards, Seed: o.seed},
		Batch:   (o.batch + shards - 1) / shards,
		Load:    func(_ context.Context, indices []int) (digits.Set[F], error) { return trainSet.Pick(indices), nil },
	}

	var at progress
	from := "" // the checkpoint
	if o.checkpoint != "" {
		from, err = reducer.LoadLatest(ctx, o.checkpoint, &at, model.velocities()...)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}

	done := &run{ranks: ranks, from: at.Epoch, total: epoch{accuracy: at.Accuracy}}
	r.table(ranks, shards, loader.Batch, from)

	for number := at.Epoch + 1; number <= o.epochs; number++ {
		e := epoch{number: number, samples: shards * ddp.Sampler{Samples: trainSet.Len(), Ranks: shards}.Len()}
		if err := trainEpoch(ctx, &e, o, reducer, loader, model); err != nil {
			return nil, err
		}
		if err := evaluate(&e, group, model, testSet); err != nil {
			return nil, err
		}

		if math.IsNaN(e.loss) || math.IsInf(e.loss, 0) {
			return nil, fmt.Errorf("the training diverged in epoch %d: the loss is %v; try a smaller learning rate than %v", number, e.loss, o.rate)
		}
		r.epoch(e)
		done.add(e)
		if o.checkpoint == "" {
			continue
		}

		file := filepath.Join(o.checkpoint, fmt.Sprintf("epoch-%d.safetensors", number))
		if _, err := reducer.SaveAsync(ctx, file, progress{number, e.accuracy}, model.velocities()...); err != nil {
			return nil, err
		}
	}

	done.checksum = model.checksum()
	if err := reducer.Verify(ctx); err != nil { // the weights of all ranks are equal, bit by bit
		return nil, err
	}
	return done, reducer.Close() // and the last checkpoint is written
}

// trainEpoch makes the steps of an epoch.
func trainEpoch[F nn.Float](ctx context.Context, e *epoch, o options, reducer *ddp.Reducer, loader ddp.Loader[digits.Set[F]], model mlp[F]) error {
	next, stop := iter.Pull2(loader.Epoch(ctx, e.number, 0))
	defer stop()
	var losses [][]float64 // by shard and step
	start := time.Now()
	for range loader.Steps() {
		hosted := 0
		for range reducer.Shards() { // one, unless -shards is set
			batch, err, ok := next()
			if err != nil {
				return err
			}
			if !ok {
				return errors.New("the loader has no batch for a shard")
			}

			loss, _ := model.loss(batch)
			if hosted == len(losses) {
				losses = append(losses, nil)
			}
			losses[hosted] = append(losses[hosted], loss)
			hosted++
			model.backward(reducer.Ready) // a layer is averaged while those below are computed
		}

		computed := time.Now()
		if err := reducer.Wait(ctx); err != nil {
			return err
		}
		e.waits = append(e.waits, time.Since(computed))
		model.step(F(o.rate), F(o.momentum))
	}
	e.elapsed = time.Since(start)

	var err error
	e.losses, err = ddp.MeanOverShards(ctx, reducer, slices.Concat(losses...))
	return err
}

// progress is the state of a checkpoint.
type progress struct {
	Epoch    int
	Accuracy float64
}

// evaluate completes an epoch by what needs all ranks: the shortest of their
// waits in each step, and the accuracy on the test set, of which every rank tests a part.
func evaluate[F nn.Float](e *epoch, group *dist.ProcessGroup, model mlp[F], testSet digits.Set[F]) error {
	for _, wait := range e.waits {
		e.communicating += wait
	}

	_, correct := model.loss(testSet.Slice(ccl.BlockRange(testSet.Len(), group.Rank(), group.Size())))
	count := []int{correct}
	all := dist.WithGroup(group)
	if err := cmp.Or(
		dist.AllReduce(e.waits, dist.Min, all),
		dist.AllReduce(count, dist.Sum, all),
	); err != nil {
		return err
	}

	for step, loss := range e.losses {
		e.loss += loss / float64(len(e.losses))
		e.working += e.waits[step]
	}
	e.accuracy = float64(count[0]) / float64(testSet.Len())
	return nil
}
