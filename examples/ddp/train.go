package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
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
	reducer, err := ddp.New(ctx, group, model.parameters(), ddp.Options{FirstBucketBytes: 1, BucketBytes: 1, KeepCheckpoints: 2})
	if err != nil {
		return nil, err
	}
	loader := ddp.Loader[digits.Set[F]]{
		Sampler: ddp.Sampler{Samples: trainSet.Len(), Ranks: ranks, Rank: rank, Seed: o.seed},
		Batch:   (o.batch + ranks - 1) / ranks,
		Load:    func(_ context.Context, indices []int) (digits.Set[F], error) { return trainSet.Pick(indices), nil },
	}

	var at progress
	if o.checkpoint != "" {
		_, err := reducer.LoadLatest(ctx, o.checkpoint, &at, model.velocities()...)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}

	done := &run{ranks: ranks, from: at.Epoch, total: epoch{accuracy: at.Accuracy}}
	r.table(ranks, loader.Batch)
	for number := at.Epoch + 1; number <= o.epochs; number++ {
		e := epoch{number: number, samples: ranks * loader.Sampler.Len()}
		start := time.Now()
		for batch, err := range loader.Epoch(ctx, number, 0) {
			if err != nil {
				return nil, err
			}
			loss, _ := model.loss(batch)
			model.backward(reducer.Ready) // a layer is averaged while those below are computed
			computed := time.Now()
			if err := reducer.Wait(ctx); err != nil {
				return nil, err
			}
			e.losses, e.waits = append(e.losses, loss), append(e.waits, time.Since(computed))
			model.step(F(o.rate), F(o.momentum))
		}
		e.elapsed = time.Since(start)

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

// progress is the state of a checkpoint.
type progress struct {
	Epoch    int
	Accuracy float64
}

// evaluate completes an epoch by what needs all ranks: their mean loss, the shortest of their
// waits in each step, and the accuracy on the test set, of which every rank tests a part.
func evaluate[F nn.Float](e *epoch, group *dist.ProcessGroup, model mlp[F], testSet digits.Set[F]) error {
	for _, wait := range e.waits {
		e.communicating += wait
	}

	_, correct := model.loss(testSet.Slice(ccl.BlockRange(testSet.Len(), group.Rank(), group.Size())))
	count := []int{correct}
	all := dist.WithGroup(group)
	if err := cmp.Or(
		dist.AllReduce(e.losses, dist.Avg, all),
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
