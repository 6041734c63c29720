package primitive

import (
	"context"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
)

// AllSumReduce sums tensors over some dimensions of a partition: every worker gets the sum of the
// tensors of the workers that differ from it only in these dimensions. They have the same shape. It
// is self-adjoint.
//
// The result may be the input, in place.
type AllSumReduce[T Number] struct {
	group         *group
	input, output scratch[T]
}

// NewAllSumReduce makes the operator. All active workers of p call it, with the same axes; without
// axes it is the identity. On inactive workers it needs no communication. Its errors are those of
// Partition.AllReduction.
func NewAllSumReduce[T Number](ctx context.Context, p *partition.Partition, axes ...int) (*AllSumReduce[T], error) {
	if !p.Active() {
		return &AllSumReduce[T]{}, nil
	}
	group, err := p.AllReduction(ctx, axes...)
	if err != nil {
		return nil, err
	}
	return &AllSumReduce[T]{group: newGroup(group, allSumReduce, 0)}, nil
}

// Forward implements Operator.
func (o *AllSumReduce[T]) Forward(ctx context.Context, y, x *Tensor[T]) (*Tensor[T], error) {
	return o.sum(ctx, forward, y, x)
}

// Adjoint implements Operator.
func (o *AllSumReduce[T]) Adjoint(ctx context.Context, x, y *Tensor[T]) (*Tensor[T], error) {
	return o.sum(ctx, adjoint, x, y)
}

func (o *AllSumReduce[T]) sum(ctx context.Context, c call, y, x *Tensor[T]) (*Tensor[T], error) {
	if o.group == nil {
		return none(y), nil
	}
	if err := exchangeHeaders(ctx, o.group, c, x, true); err != nil {
		return nil, err
	}
	if err := o.group.checkInputs(func(int) bool { return true }); err != nil {
		return nil, err
	}
	if err := o.group.checkSameShape(0); err != nil {
		return nil, err
	}

	y = reuse(y, x.shape)
	if x.Len() == 0 {
		return y, nil
	}
	to := o.output.target(y)
	if err := ccl.AllReduce(ctx, o.group.comm, o.input.packed(x), to, ccl.Sum, o.group.label); err != nil {
		return nil, err
	}
	unpack(y, to)
	return y, nil
}

// Close implements Operator.
func (o *AllSumReduce[T]) Close() error { return o.group.close() }
