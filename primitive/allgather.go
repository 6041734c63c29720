package primitive

import (
	"context"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
)

// AllGather concatenates the tensors of the workers along one dimension of a partition, in one
// dimension of the tensor: every worker gets the whole. The parts have the extents of
// ccl.BlockRange in that dimension and are equal in the others. Its adjoint is ReduceScatter.
type AllGather[T Number] struct{ line line[T] }

// NewAllGather makes the operator along a dimension axis of p, in the dimension dim of tensors. All
// active workers of p call it, with the same arguments. On inactive workers it needs no
// communication. Rejected with *ccl.InvalidArgumentError: an axis that p does not have, a negative
// dim.
func NewAllGather[T Number](ctx context.Context, p *partition.Partition, axis, dim int) (*AllGather[T], error) {
	l, err := newLine[T](ctx, allGather, p, axis, dim)
	if err != nil {
		return nil, err
	}
	return &AllGather[T]{l}, nil
}

// Forward implements Operator.
func (o *AllGather[T]) Forward(ctx context.Context, y, x *Tensor[T]) (*Tensor[T], error) {
	return o.line.gather(ctx, forward, y, x)
}

// Adjoint implements Operator.
func (o *AllGather[T]) Adjoint(ctx context.Context, x, y *Tensor[T]) (*Tensor[T], error) {
	return o.line.scatter(ctx, adjoint, x, y)
}

// Close implements Operator.
func (o *AllGather[T]) Close() error { return o.line.group.close() }

// ReduceScatter sums the tensors of the workers along one dimension of a partition, which have the
// same shape, and gives each its part of the sum: one dimension of the tensor is divided as
// ccl.BlockRange does. Its adjoint is AllGather.
type ReduceScatter[T Number] struct{ line line[T] }

// NewReduceScatter makes the operator. See NewAllGather.
func NewReduceScatter[T Number](ctx context.Context, p *partition.Partition, axis, dim int) (*ReduceScatter[T], error) {
	l, err := newLine[T](ctx, reduceScatter, p, axis, dim)
	if err != nil {
		return nil, err
	}
	return &ReduceScatter[T]{l}, nil
}

// Forward implements Operator.
func (o *ReduceScatter[T]) Forward(ctx context.Context, y, x *Tensor[T]) (*Tensor[T], error) {
	return o.line.scatter(ctx, forward, y, x)
}

// Adjoint implements Operator.
func (o *ReduceScatter[T]) Adjoint(ctx context.Context, x, y *Tensor[T]) (*Tensor[T], error) {
	return o.line.gather(ctx, adjoint, x, y)
}

// Close implements Operator.
func (o *ReduceScatter[T]) Close() error { return o.line.group.close() }

// line is the group of workers along one dimension of a partition.
type line[T Number] struct {
	group         *group
	dim           int
	counts        []int   // elements of each worker's part
	part          part[T] // of the whole tensor
	ranges        []ccl.Range
	input, output scratch[T]
	shape         [MaxDims]int // of the result
}

func newLine[T Number](ctx context.Context, k kind, p *partition.Partition, axis, dim int) (line[T], error) {
	l := line[T]{dim: dim}
	if !p.Active() {
		return l, nil
	}
	if dim < 0 || dim >= MaxDims {
		return l, p.Communicator().Reject(ctx, invalid(k.String(), "dimension %d of tensors: from 0 to %d are possible", dim, MaxDims-1))
	}
	group, err := p.AllReduction(ctx, axis)
	if err != nil {
		return l, err
	}

	l.group = newGroup(group, k, dim)
	l.counts = make([]int, group.Size())
	l.ranges = make([]ccl.Range, dim+1)
	return l, nil
}

// begin exchanges headers, and checks that all tensors have the dimension.
func (l *line[T]) begin(ctx context.Context, c call, x *Tensor[T]) error {
	g := l.group
	if err := exchangeHeaders(ctx, g, c, x, true); err != nil {
		return err
	}
	if err := g.checkInputs(func(int) bool { return true }); err != nil {
		return err
	}

	if flat := g.ranksThat(func(r int) bool { return len(g.dims(r)) <= l.dim }); flat != nil {
		return g.share(flat, "the tensor %s of rank %d of the group %s has no dimension %d", g.shapeText(flat[0]), flat[0], g.name(), l.dim)
	}
	return nil
}

// gather concatenates the tensors of all workers in y.
func (l *line[T]) gather(ctx context.Context, c call, y, x *Tensor[T]) (*Tensor[T], error) {
	if l.group == nil {
		return none(y), nil
	}
	if err := l.begin(ctx, c, x); err != nil {
		return nil, err
	}
	g := l.group
	whole := 0
	for r := range g.Size() {
		whole += g.dims(r)[l.dim]
	}

	for r := range g.Size() {
		if len(g.dims(r)) != len(g.dims(0)) {
			return nil, g.shapesDiffer(0)
		}
		for d, extent := range g.dims(r) {
			if d != l.dim && extent != g.dims(0)[d] {
				return nil, g.shapesDiffer(0)
			}
		}
	}

	for r := range g.Size() {
		lo, hi := ccl.BlockRange(whole, r, g.Size())
		if n := g.dims(r)[l.dim]; n != hi-lo {
			return nil, g.share(nil, "rank %d of the group %s has %d of %d elements in dimension %d, and its part is %d: see Repartition",
				r, g.name(), n, whole, l.dim, hi-lo)
		}
	}

	shape := append(l.shape[:0], x.shape...)
	shape[l.dim] = whole
	y = reuse(y, shape)
	rest := 1
	for d, extent := range x.shape {
		if d != l.dim {
			rest *= extent
		}
	}
	if rest*whole == 0 {
		return y, nil
	}

	for r := range l.counts {
		l.counts[r] = rest * g.dims(r)[l.dim]
	}
	if l.outermost(y) {
		return y, ccl.AllGatherV(ctx, g.comm, l.input.packed(x), y.Data(), l.counts, nil, g.label)
	}
	all := l.output.take(rest * whole)
	if err := ccl.AllGatherV(ctx, g.comm, l.input.packed(x), all, l.counts, nil, g.label); err != nil {
		return nil, err
	}
	l.eachPart(y, all, whole, (*Tensor[T]).copyOf)
	return y, nil
}

// outermost reports whether the parts of t lie one after another in its memory.
func (l *line[T]) outermost(t *Tensor[T]) bool {
	if !t.contiguous() {
		return false
	}
	for _, extent := range t.shape[:l.dim] {
		if extent != 1 {
			return false
		}
	}
	return true
}

// eachPart calls f with each worker's part of t and the memory of the same part, where the parts
// lie one after another.
func (l *line[T]) eachPart(t *Tensor[T], memory []T, whole int, f func(part *Tensor[T], memory []T)) {
	for d := range l.dim {
		l.ranges[d] = ccl.Range{Lo: 0, Hi: t.shape[d]}
	}
	for r, n := range l.counts {
		lo, hi := ccl.BlockRange(whole, r, len(l.counts))
		l.ranges[l.dim] = ccl.Range{Lo: lo, Hi: hi}
		f(l.part.of(t, l.ranges), memory[:n])
		memory = memory[n:]
	}
}

// scatter sums the tensors of all workers and stores this worker's part in y.
func (l *line[T]) scatter(ctx context.Context, c call, y, x *Tensor[T]) (*Tensor[T], error) {
	if l.group == nil {
		return none(y), nil
	}
	if err := l.begin(ctx, c, x); err != nil {
		return nil, err
	}
	g := l.group
	if err := g.checkSameShape(0); err != nil {
		return nil, err
	}

	whole := x.shape[l.dim]
	lo, hi := ccl.BlockRange(whole, g.Rank(), g.Size())
	shape := append(l.shape[:0], x.shape...)
	shape[l.dim] = hi - lo
	y = reuse(y, shape)
	if x.Len() == 0 {
		return y, nil
	}

	rest := x.Len() / whole
	for r := range l.counts {
		lo, hi := ccl.BlockRange(whole, r, g.Size())
		l.counts[r] = rest * (hi - lo)
	}
	var from []T
	if l.outermost(x) {
		from = x.Data()
	} else {
		from = l.input.take(x.Len())
		l.eachPart(x, from, whole, (*Tensor[T]).copyTo)
	}

	to := l.output.target(y)
	if err := ccl.ReduceScatterV(ctx, g.comm, from, to, ccl.Sum, l.counts, g.label); err != nil {
		return nil, err
	}
	unpack(y, to)
	return y, nil
}
