package main

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/examples/nn"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// The training: stochastic gradient descent, on four fifths of the digits.
const (
	batchSize = 32
	rate      = 0.05
	momentum  = 0.9
	seed      = 1
)

// trainer trains a network on a partition.
type trainer[F nn.Float] struct {
	*network[F]
	data        digits.Set[F]
	images      *primitive.Tensor[F]       // those of data: images x 1 x height x width
	train, test []int                      // the images to train on, and those held out
	total       *primitive.AllSumReduce[F] // over all workers
	x           *primitive.Tensor[F]
}

// newTrainer makes a trainer on a partition of the shape batch x 1 x height x width. Only workers
// of the partition call it.
func newTrainer[F nn.Float](ctx context.Context, grid *partition.Partition, data digits.Set[F]) (*trainer[F], error) {
	n, err := newNetwork[F](ctx, grid, seed)
	if err != nil {
		return nil, err
	}
	total, err := primitive.NewAllSumReduce[F](ctx, n.rows, 0)
	if err != nil {
		return nil, err
	}

	images, err := primitive.TensorOf(data.Images, data.Len(), 1, digits.Side, digits.Side)
	if err != nil {
		return nil, err
	}
	order := rand.New(rand.NewPCG(seed, 1)).Perm(data.Len())
	cut := len(order) * 4 / 5
	return &trainer[F]{network: n, data: data, images: images, train: order[:cut], test: order[cut:], total: total}, nil
}

// epoch trains once on all images, in an order that depends on the number of the epoch only. It
// returns the mean loss, the same on all workers.
func (t *trainer[F]) epoch(ctx context.Context, number int) (loss F, err error) {
	order := make([]int, len(t.train))
	for i, k := range rand.New(rand.NewPCG(seed, uint64(number)+1)).Perm(len(order)) {
		order[i] = t.train[k]
	}
	loss, _, err = t.pass(ctx, order, func(gradient *primitive.Tensor[F]) error {
		if err := t.backward(ctx, gradient); err != nil {
			return err
		}
		t.step(rate, momentum)
		return nil
	})
	return loss, err
}

// accuracy returns the share of the images held out that the network classifies correctly.
func (t *trainer[F]) accuracy(ctx context.Context) (F, error) {
	_, right, err := t.pass(ctx, t.test, func(*primitive.Tensor[F]) error { return nil })
	return right, err
}

// pass runs the network on images, in batches of about batchSize, and calls learn with the
// gradient of the mean loss of each batch, by its logits. It returns the mean loss of all images,
// and the share of them that is classified correctly.
func (t *trainer[F]) pass(ctx context.Context, order []int, learn func(gradient *primitive.Tensor[F]) error,
) (loss, right F, err error) {
	sums := primitive.NewTensor[F](2)
	batches := (len(order) + batchSize - 1) / batchSize
	for b := range batches {
		lo, hi := ccl.BlockRange(len(order), b, batches)
		batch := order[lo:hi]
		logits, err := t.forward(ctx, t.rectangle(batch))
		if err != nil {
			return 0, 0, err
		}

		rows := part(t.rows, 0, len(batch))
		loss, correct := nn.CrossEntropy(logits.Data(), t.data.Pick(batch[rows.Lo:rows.Hi]).Labels, len(batch))
		sums.Data()[0] += F(loss)
		sums.Data()[1] += F(correct)
		if err := learn(logits); err != nil {
			return 0, 0, err
		}
	}

	if _, err := t.total.Forward(ctx, sums, sums); err != nil {
		return 0, 0, err
	}
	n := F(len(order))
	return sums.At(0) / n, sums.At(1) / n, nil
}

// rectangle returns this worker's part of a batch of images.
func (t *trainer[F]) rectangle(batch []int) *primitive.Tensor[F] {
	rows := part(t.grid, 0, len(batch))
	height, width := part(t.grid, 2, digits.Side), part(t.grid, 3, digits.Side)
	t.x = sized(t.x, rows.Hi-rows.Lo, 1, height.Hi-height.Lo, width.Hi-width.Lo)
	for i, k := range batch[rows.Lo:rows.Hi] {
		from := t.images.Slice(ccl.Range{Lo: k, Hi: k + 1}, ccl.Range{Lo: 0, Hi: 1}, height, width)
		_ = t.x.Slice(ccl.Range{Lo: i, Hi: i + 1}).CopyFrom(from) // of the same shape
	}
	return t.x
}

func (t *trainer[F]) close() error { return errors.Join(t.network.close(), t.total.Close()) }
