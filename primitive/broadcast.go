package primitive

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
)

// Broadcast copies a tensor from a partition to a larger one, after the rules of
// Partition.BroadcastTo: every worker of the destination gets a copy of the part of its source. Its
// adjoint sums the copies' gradients back: it is SumReduce.
type Broadcast[T Number] struct{ stars stars[T] }

// NewBroadcast makes the operator from x to y. All workers of the common ancestor of x and y call
// it, active or not. Its errors are those of Partition.BroadcastTo.
func NewBroadcast[T Number](ctx context.Context, x, y *partition.Partition, opts ...partition.Option) (*Broadcast[T], error) {
	send, recv, err := x.BroadcastTo(ctx, y, opts...)
	if err != nil {
		return nil, err
	}
	s, err := newStars[T](ctx, broadcast, send, recv)
	if err != nil {
		return nil, err
	}
	return &Broadcast[T]{s}, nil
}

// Forward implements Operator.
func (o *Broadcast[T]) Forward(ctx context.Context, y, x *Tensor[T]) (*Tensor[T], error) {
	return o.stars.spread(ctx, forward, y, x)
}

// Adjoint implements Operator.
func (o *Broadcast[T]) Adjoint(ctx context.Context, x, y *Tensor[T]) (*Tensor[T], error) {
	return o.stars.collect(ctx, adjoint, x, y)
}

// Close implements Operator.
func (o *Broadcast[T]) Close() error { return o.stars.close() }

// SumReduce sums a tensor from a partition to a smaller one, after the rules of
// Partition.ReductionTo: every worker of the destination gets the sum of the parts of its sources,
// which have the same shape. Its adjoint copies the gradient back: it is Broadcast.
type SumReduce[T Number] struct{ stars stars[T] }

// NewSumReduce makes the operator from x to y. All workers of the common ancestor of x and y call
// it, active or not. Its errors are those of Partition.ReductionTo.
func NewSumReduce[T Number](ctx context.Context, x, y *partition.Partition, opts ...partition.Option) (*SumReduce[T], error) {
	send, recv, err := x.ReductionTo(ctx, y, opts...)
	if err != nil {
		return nil, err
	}
	s, err := newStars[T](ctx, sumReduce, recv, send)
	if err != nil {
		return nil, err
	}
	return &SumReduce[T]{s}, nil
}

// Forward implements Operator.
func (o *SumReduce[T]) Forward(ctx context.Context, y, x *Tensor[T]) (*Tensor[T], error) {
	return o.stars.collect(ctx, forward, y, x)
}

// Adjoint implements Operator.
func (o *SumReduce[T]) Adjoint(ctx context.Context, x, y *Tensor[T]) (*Tensor[T], error) {
	return o.stars.spread(ctx, adjoint, x, y)
}

// Close implements Operator.
func (o *SumReduce[T]) Close() error { return o.stars.close() }

// stars are the up to two groups of a worker in moves between one worker, rank 0, and many. It is
// the one in the group root, and one of the many in the group leaf. They may be the same.
type stars[T Number] struct {
	kind          kind
	root, leaf    *group
	inOrder       []star
	input, output scratch[T]
}

// star is a group of one and many.
type star struct {
	*group
	firstLeaf int // 0 if the root is also one of the many, else 1
}

func newStars[T Number](ctx context.Context, k kind, root, leaf *partition.Partition) (stars[T], error) {
	s := stars[T]{kind: k}
	var failed error
	for _, p := range partition.InOrder(root, leaf) {
		g := star{group: newGroup(p, k, 0)}
		if p == root {
			s.root = g.group
		}
		if p == leaf {
			s.leaf = g.group
		}

		first := []int{1}
		if root == leaf {
			first[0] = 0
		}
		failed = errors.Join(failed, ccl.Broadcast(ctx, g.comm, first, 0, g.label))
		g.firstLeaf = first[0]
		s.inOrder = append(s.inOrder, g)
	}
	if failed != nil {
		_ = s.close()
	}
	return s, failed
}

func (s *stars[T]) close() error { return errors.Join(s.root.close(), s.leaf.close()) }

// spread copies x from the root of each group to its leaves.
func (s *stars[T]) spread(ctx context.Context, c call, y, x *Tensor[T]) (*Tensor[T], error) {
	return s.move(ctx, c, y, x, s.root, s.leaf, (*stars[T]).spreadIn)
}

// collect sums y of the leaves of each group to its root.
func (s *stars[T]) collect(ctx context.Context, c call, x, y *Tensor[T]) (*Tensor[T], error) {
	return s.move(ctx, c, x, y, s.leaf, s.root, (*stars[T]).collectIn)
}

// move moves data in each group, from the worker's part x in the group from to the part y in the
// group to.
func (s *stars[T]) move(
	ctx context.Context, c call, y, x *Tensor[T], from, to *group,
	moveIn func(s *stars[T], ctx context.Context, g star, c call, y, x *Tensor[T]) (*Tensor[T], error),
) (_ *Tensor[T], failed error) {
	if to == nil {
		y = none(y)
	}
	for _, g := range s.inOrder { // also after an error, which may be of one group only
		var in *Tensor[T]
		if g.group == from || from == nil { // a tensor that does not belong here is found by all
			in = x
		}
		made, err := moveIn(s, ctx, g, c, y, in)
		if g.group == to {
			y = made
		}
		failed = errors.Join(failed, err)
	}

	if from == nil && x.Len() > 0 && failed == nil {
		failed = invalid(s.kind.String(), "this worker passes a tensor of shape %d, and has no part of the input", x.shape)
	}
	if failed != nil {
		return nil, failed
	}
	return y, nil
}

func (s *stars[T]) spreadIn(ctx context.Context, g star, c call, y, x *Tensor[T]) (*Tensor[T], error) {
	if err := exchangeHeaders(ctx, g.group, c, x, g.group == s.root); err != nil {
		return nil, err
	}
	if err := g.checkInputs(func(r int) bool { return r == 0 }); err != nil {
		return nil, err
	}
	if g.group == s.leaf {
		y = reuse(y, g.dims(0))
	}
	if g.volume(0) == 0 {
		return y, nil
	}

	if g.group == s.root {
		if g.group == s.leaf {
			y.copy(x)
		}
		return y, ccl.Broadcast(ctx, g.comm, s.input.packed(x), 0, g.label)
	}
	to := s.output.target(y)
	if err := ccl.Broadcast(ctx, g.comm, to, 0, g.label); err != nil {
		return nil, err
	}
	unpack(y, to)
	return y, nil
}

func (s *stars[T]) collectIn(ctx context.Context, g star, c call, x, y *Tensor[T]) (*Tensor[T], error) {
	if err := exchangeHeaders(ctx, g.group, c, y, g.group == s.leaf); err != nil {
		return nil, err
	}
	first := g.firstLeaf
	if err := g.checkInputs(func(r int) bool { return r >= first }); err != nil {
		return nil, err
	}
	if err := g.checkSameShape(first); err != nil {
		return nil, err
	}

	if g.group == s.root {
		x = reuse(x, g.dims(first))
	}
	switch {
	case g.volume(first) == 0:
		return x, nil
	case g.group != s.root:
		return x, ccl.Reduce(ctx, g.comm, s.input.packed(y), nil, ccl.Sum, 0, g.label)
	}

	to := s.output.target(x)
	from := to
	if g.group == s.leaf {
		from = s.input.packed(y)
	} else {
		clear(to) // the root has nothing to add
	}
	if err := ccl.Reduce(ctx, g.comm, from, to, ccl.Sum, 0, g.label); err != nil {
		return nil, err
	}
	unpack(x, to)
	return x, nil
}
