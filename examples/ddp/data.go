package main

import (
	"context"
	"math/rand/v2"

	"github.com/goccl/goccl/examples/digits"
)

const (
	pixels  = digits.Pixels
	classes = digits.Classes
)

// dataset is a list of images, with pixels scaled to 0..1, and their labels. It
// is read-only, so all ranks of a process share it.
type dataset[F float] struct {
	images []F // len(labels) rows of pixels values
	labels []uint8
}

func (d *dataset[F]) len() int { return len(d.labels) }

// batch copies the images and labels at the given indices together.
func (d *dataset[F]) batch(indices []int) (images []F, labels []uint8) {
	images = make([]F, 0, len(indices)*pixels)
	labels = make([]uint8, 0, len(indices))
	for _, i := range indices {
		images = append(images, d.images[i*pixels:(i+1)*pixels]...)
		labels = append(labels, d.labels[i])
	}
	return images, labels
}

// batch is some samples.
type batch[F float] struct {
	images []F
	labels []uint8
}

// load is batch for ddp.Loader.
func (d *dataset[F]) load(_ context.Context, indices []int) (batch[F], error) {
	images, labels := d.batch(indices)
	return batch[F]{images, labels}, nil
}

// split divides the rows into a training and a test set, about 80 to 20, by a
// permutation that depends only on the seed.
func (d *dataset[F]) split(seed uint64) (train, test *dataset[F]) {
	order := rand.New(rand.NewPCG(seed, 0)).Perm(d.len())
	cut := d.len() * 4 / 5
	return d.pick(order[:cut]), d.pick(order[cut:])
}

func (d *dataset[F]) pick(indices []int) *dataset[F] {
	images, labels := d.batch(indices)
	return &dataset[F]{images, labels}
}

// loadDigits returns all digits.
func loadDigits[F float]() (*dataset[F], error) {
	images, labels, err := digits.Load[F]()
	return &dataset[F]{images, labels}, err
}
