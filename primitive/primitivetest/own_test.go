package primitivetest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
	"github.com/goccl/goccl/primitive"
	"github.com/goccl/goccl/primitive/primitivetest"
)

// mean is an operator of an author: the mean of the workers' tensors, for all of them.
type mean struct {
	sum     *primitive.AllSumReduce[float64]
	total   *primitive.Tensor[float64] // of the latest call
	workers float64
}

func newMean(ctx context.Context, p *partition.Partition) (*mean, error) {
	sum, err := primitive.NewAllSumReduce[float64](ctx, p, 0)
	return &mean{sum: sum, workers: float64(p.Size())}, err
}

func (m *mean) Forward(ctx context.Context, y, x *primitive.Tensor[float64]) (*primitive.Tensor[float64], error) {
	var err error
	if m.total, err = m.sum.Forward(ctx, m.total, x); err != nil {
		return nil, err
	}
	elements := m.total.Data() // not y's, whose elements need not lie next to each other
	for i := range elements {
		elements[i] /= m.workers
	}
	if y == nil || !slices.Equal(y.Shape(), m.total.Shape()) {
		y = primitive.NewTensor[float64](m.total.Shape()...)
	}
	return y, y.CopyFrom(m.total)
}

func (m *mean) Adjoint(ctx context.Context, x, y *primitive.Tensor[float64]) (*primitive.Tensor[float64], error) {
	return m.Forward(ctx, x, y) // it is self-adjoint
}

func (m *mean) Close() error { return m.sum.Close() }

func TestMean(t *testing.T) {
	partitiontest.Workers(t, 4, func(ctx context.Context, world *partition.Partition) error {
		op, err := newMean(ctx, world)
		if err != nil {
			return err
		}
		primitivetest.Adjoint(ctx, t, world, op, primitive.NewTensor[float64](8, 9))
		return op.Close()
	})
}
