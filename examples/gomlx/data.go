package main

import (
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"github.com/goccl/goccl/examples/digits"
)

// batch is some samples as GoMLX takes them.
type batch struct {
	images, labels *tensors.Tensor // a row for each sample
}

// batchOf copies samples to tensors.
func batchOf(set digits.Set[float32]) batch {
	labels := make([]int32, set.Len())
	for i, label := range set.Labels {
		labels[i] = int32(label)
	}
	return batch{
		tensors.FromFlatDataAndDimensions(set.Images, set.Len(), digits.Pixels),
		tensors.FromFlatDataAndDimensions(labels, set.Len(), 1),
	}
}
