package primitivetest_test

import (
	"context"
	"testing"

	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
	"github.com/goccl/goccl/primitive"
	"github.com/goccl/goccl/primitive/primitivetest"
)

// mean is an operator of an author: the mean of the workers' tensors, for all of them.
type mean struct {
	sum     *primitive.AllSumReduce[float64]
	workers float64
}

func newMean(ctx context.Context, p *partition.Partition) (*mean, error) {
	sum, err := primitive.NewAllSumReduce[float64](ctx, p, 0)
	return &mean{sum, float64(p.Size())}, err
}

func (m *mean) Forward(ctx context.Context, y, x *primitive.Tensor[float64]) (*primitive.Tensor[float64], error) {
	y, err := m.sum.Forward(ctx, y, x)
	if err != nil {
		return nil, err
	}
	for i := range y.Data() {
		y.Data()[i] /= m.workers
	}
	return y, nil
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
