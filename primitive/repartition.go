package primitive

import (
	"context"
	"errors"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/rowmajor"
	"github.com/goccl/goccl/partition"
)

// Repartition moves a tensor from one partition to another (the transpose of DistDL). The
// partitions have as many dimensions as the tensor and may have any workers. Data moves over their
// union, by one all-to-all; what stays on a worker is copied.
//
// The parts of the input may have any shapes that add up to a whole tensor, whose shape is found in
// the call. In the result, each dimension is divided among the workers of that dimension as
// ccl.BlockRange does.
//
// The adjoint moves the gradient back: its result is divided as the last input of Forward that had
// the same shape as a whole, among the last 16 kinds of inputs; without one, as ccl.BlockRange
// does.
//
// If the partitions are equal the operator copies an input that is already divided so.
type Repartition[T Number] struct {
	there, back route[T]
	union       *partition.Partition
}

// NewRepartition makes the operator from x to y. All workers of the common ancestor of x and y call
// it, active or not. If the numbers of dimensions differ, all workers of the union get
// *ccl.InvalidArgumentError.
func NewRepartition[T Number](ctx context.Context, x, y *partition.Partition) (*Repartition[T], error) {
	union, err := x.Union(ctx, y)
	if err != nil {
		return nil, err
	}
	o := &Repartition[T]{union: union}
	if !union.Active() {
		return o, nil
	}
	teams, err := union.Teams(ctx, x, y)
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}

	from, to := teams[0], teams[1]
	if len(from.Shape) != len(to.Shape) {
		err := share(union, repartition, nil, "the partitions have the shapes %d and %d, with different numbers of dimensions", from.Shape, to.Shape)
		return nil, errors.Join(err, o.Close())
	}
	o.there, o.back = newRoute[T](union, from, to), newRoute[T](union, to, from)
	o.back.opposite = &o.there
	return o, nil
}

// Forward implements Operator.
func (o *Repartition[T]) Forward(ctx context.Context, y, x *Tensor[T]) (*Tensor[T], error) {
	return o.there.move(ctx, forward, y, x)
}

// Adjoint implements Operator.
func (o *Repartition[T]) Adjoint(ctx context.Context, x, y *Tensor[T]) (*Tensor[T], error) {
	return o.back.move(ctx, adjoint, x, y)
}

// Close implements Operator.
func (o *Repartition[T]) Close() error { return o.union.Close() }

// route moves tensors from one side to another.
type route[T Number] struct {
	union    *group
	from, to partition.Team
	identity bool
	opposite *route[T]  // results are divided like its inputs; nil: evenly
	plans    []*plan[T] // the last used first
	sent     scratch[T]
	received scratch[T]
	source   part[T]
	dest     part[T]
}

func newRoute[T Number](union *partition.Partition, from, to partition.Team) route[T] {
	return route[T]{
		union: newGroup(union, repartition, 0), from: from, to: to,
		identity: slices.Equal(from.Shape, to.Shape) && slices.Equal(from.Workers, to.Workers),
	}
}

// maxPlans is the number of plans that a route remembers.
const maxPlans = 16

// plan is how a worker takes part in the move of a tensor. There is one for each set of shapes that
// workers brought.
type plan[T Number] struct {
	headers                []int
	input                  *tiling
	like                   *tiling // of the opposite route: the result's; nil: it is even
	isCopy                 bool    // no data moves between workers
	shape                  []int   // of this worker's part of the result
	sends, receives        []parcel
	sendCounts, recvCounts []int // by worker; 0 for this one
	sendTotal, recvTotal   int
	places                 []int // of what arrives in a contiguous result, by worker; nil: it does not fit there
}

// parcel is what moves between two workers.
type parcel struct {
	part   []ccl.Range // of this worker's tensor
	worker int         // the other, of the union
	volume int
	self   bool
}

func (o *route[T]) move(ctx context.Context, c call, y, x *Tensor[T]) (*Tensor[T], error) {
	if o.union == nil {
		return none(y), nil
	}
	g := o.union
	rank := o.from.Rank(g.Rank())
	if err := exchangeHeaders(ctx, g, c, x, rank >= 0); err != nil {
		return nil, err
	}
	p, err := o.plan()
	if err != nil {
		return nil, err
	}

	y = reuse(y, p.shape)
	if p.isCopy {
		y.copy(x)
		return y, nil
	}

	sent := o.sent.take(p.sendTotal)
	at := 0
	for i := range p.sends {
		if m := &p.sends[i]; !m.self {
			o.source.of(x, m.part).copyTo(sent[at : at+m.volume])
			at += m.volume
		}
	}

	if data := y.Data(); data != nil && p.places != nil {
		if err := ccl.AllToAllV(ctx, g.comm, sent, p.sendCounts, nil, data, p.recvCounts, p.places, g.label); err != nil {
			return nil, err
		}
	} else {
		received := o.received.take(p.recvTotal)
		if err := ccl.AllToAllV(ctx, g.comm, sent, p.sendCounts, nil, received, p.recvCounts, nil, g.label); err != nil {
			return nil, err
		}

		at = 0
		for i := range p.receives {
			if m := &p.receives[i]; !m.self {
				o.dest.of(y, m.part).copyOf(received[at : at+m.volume])
				at += m.volume
			}
		}
	}

	if s := slices.IndexFunc(p.sends, isSelf); s >= 0 {
		r := slices.IndexFunc(p.receives, isSelf)
		o.dest.of(y, p.receives[r].part).copy(o.source.of(x, p.sends[s].part))
	}
	return y, nil
}

func isSelf(m parcel) bool { return m.self }

// plan returns the plan for the shapes that the workers bring.
func (o *route[T]) plan() (*plan[T], error) {
	for i, p := range o.plans {
		if slices.Equal(p.headers, o.union.all) && p.like == o.like(p.input.whole) {
			if i > 0 { // the next search finds it at once
				copy(o.plans[1:], o.plans[:i])
				o.plans[0] = p
			}
			return p, nil
		}
	}
	p, err := o.newPlan()
	if err != nil {
		return nil, err
	}

	o.plans = slices.Insert(o.plans, 0, p)
	o.plans = o.plans[:min(len(o.plans), maxPlans)]
	return p, nil
}

// newPlan makes a plan, or finds why the shapes are wrong: the same on all workers.
func (o *route[T]) newPlan() (*plan[T], error) {
	input, err := o.inputTiling()
	if err != nil {
		return nil, err
	}
	like := o.like(input.whole)
	output := like
	if like == nil {
		output = evenTiling(input.whole, o.to.Shape)
	}
	me, workers := o.union.Rank(), o.union.Size()
	p := &plan[T]{
		headers: slices.Clone(o.union.all), input: input, like: like, shape: empty,
		isCopy:     o.identity && slices.EqualFunc(input.boxes, output.boxes, slices.Equal),
		sendCounts: make([]int, workers), recvCounts: make([]int, workers),
	}

	if rank := o.from.Rank(me); rank >= 0 {
		p.sends, p.sendTotal = parcels(input.boxes[rank], output, o.to, me, p.sendCounts)
	}
	if rank := o.to.Rank(me); rank >= 0 {
		p.shape = extents(output.boxes[rank])
		p.receives, p.recvTotal = parcels(output.boxes[rank], input, o.from, me, p.recvCounts)
		p.places = places(p.shape, p.receives, workers)
	}
	return p, nil
}

// like returns how the last input of the opposite route with a shape was divided, or nil.
func (o *route[T]) like(whole []int) *tiling {
	if o.opposite == nil {
		return nil
	}
	for _, p := range o.opposite.plans {
		if slices.Equal(p.input.whole, whole) {
			return p.input
		}
	}
	return nil
}

// places returns the positions of what arrives from each worker in a contiguous tensor of a shape,
// or nil if the elements of one do not lie next to each other there.
func places(shape []int, receives []parcel, workers int) []int {
	at := make([]int, workers)
	first := make([]int, len(shape))
	for i := range receives {
		m := &receives[i]
		if m.self {
			continue
		}
		split := false // some dimension so far has more than one index in the part
		for d, r := range m.part {
			if first[d] = r.Lo; split && r.Hi-r.Lo != shape[d] {
				return nil
			}
			split = split || r.Hi-r.Lo > 1
		}
		at[m.worker] = rowmajor.Rank(first, shape)
	}
	return at
}

// parcels returns what moves between a worker, which has a box, and those of the other side,
// in their order in the union. It sets counts.
func parcels(box []ccl.Range, others *tiling, other partition.Team, me int, counts []int) (all []parcel, total int) {
	for worker := range counts {
		rank := other.Rank(worker)
		if rank < 0 {
			continue
		}
		common := intersect(box, others.boxes[rank])
		m := parcel{part: relative(common, box), worker: worker, volume: volume(extents(common)), self: worker == me}
		if m.volume == 0 {
			continue
		}

		all = append(all, m)
		if !m.self {
			counts[worker] = m.volume
			total += m.volume
		}
	}
	return all, total
}
