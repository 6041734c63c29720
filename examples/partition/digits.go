package main

import (
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/primitive"
)

const (
	side    = digits.Side
	classes = digits.Classes
)

// dataset are images, as a tensor of the shape images x 1 x 8 x 8 with pixels from 0 to 1, and their
// labels. They are read-only, so all workers of a process share them.
type dataset[F float] struct {
	images *primitive.Tensor[F]
	labels []uint8
}

// loadDigits returns all digits, or the first ones up to a limit above 0.
func loadDigits[F float](limit int) (*dataset[F], error) {
	images, labels, err := digits.Load[F]()
	if err != nil {
		return nil, err
	}
	if limit > 0 {
		n := min(limit, len(labels))
		images, labels = images[:n*digits.Pixels], labels[:n]
	}
	tensor, err := primitive.TensorOf(images, len(labels), 1, side, side)
	return &dataset[F]{tensor, labels}, err
}
