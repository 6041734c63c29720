package ddp

import (
	"context"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// arrangement is where the gradients of a Reducer lie.
type arrangement struct {
	pools   map[ccl.DType]pool // by type
	buckets []bucket
	isFinal bool // they have their last order
}

// inPlaceBytes is the length from which a gradient is worth a call by itself, which saves the
// copies to a bucket and back.
const inPlaceBytes = 256 << 10

// reducesInPlace reports whether a gradient of the program's own is reduced where it is. A hook
// gets buckets of the size that is asked for, and a gradient that may be unused must keep its
// value.
func (o *Options) reducesInPlace(gradient elements) bool {
	return gradient != nil && bytesOf(gradient) >= inPlaceBytes &&
		o.Hooks.of(gradient.dtype()) == nil && !o.FindUnused && !o.StaticGraph
}

// allocate makes the pools, each with room for any division of its type's gradients into buckets.
func (r *Reducer) allocate(ctx context.Context) error {
	r.pools = map[ccl.DType]pool{}
	rooms := map[ccl.DType]int{}
	for _, p := range r.params {
		if d := p.elements.dtype(); !p.isInPlace {
			rooms[d] += p.elements.count() + alignCount(1, d)
		}
	}

	for _, p := range r.params { // in the same order on all ranks
		d := p.elements.dtype()
		if r.pools[d] != nil {
			continue
		}

		r.pools[d] = p.gradient.newPool(&r.opts, r.logical.tree)
		if rooms[d] == 0 {
			continue
		}
		if err := r.pools[d].allocate(ctx, r.comm, rooms[d], r.opts.Logger); err != nil {
			return err
		}
	}
	return nil
}

// arrange makes the buckets of parameters in an order.
func (r *Reducer) arrange(order []int) {
	for _, p := range r.pools {
		p.reset()
	}
	r.buckets = nil
	for i, parameters := range r.divide(order) {
		p := r.pools[r.params[parameters[0]].elements.dtype()]
		r.buckets = append(r.buckets, bucket{
			parameters: parameters,
			pending:    len(parameters),
			reduction:  p.newReduction(r.comm, i, parameters, r.params),
		})

		count := 0
		for _, parameter := range parameters {
			p := &r.params[parameter]
			p.bucket, p.offset = i, count
			count += p.elements.count()
		}
		r.buckets[i].count = max(count, 1)

		for _, parameter := range parameters {
			r.params[parameter].gradient.setPart(r.partOf(parameter, r.comm.Rank()))
		}
	}
}

// divide divides parameters among buckets of one type each: in the given order, a bucket ends with
// the parameter by which it reaches its size, and comes after those that end before it.
//
// A parameter whose gradient is reduced in place is a bucket by itself.
func (r *Reducer) divide(order []int) (buckets [][]int) {
	type filling struct {
		dtype      ccl.DType
		parameters []int
		bytes      int
	}
	limit := r.opts.FirstBucketBytes
	var open []filling // the one that got a parameter last is the last
	for _, i := range order {
		p := &r.params[i]
		if p.isInPlace {
			buckets = append(buckets, []int{i})
			continue
		}
		f := filling{dtype: p.elements.dtype()}
		if at := slices.IndexFunc(open, func(o filling) bool { return o.dtype == f.dtype }); at >= 0 {
			f = open[at]
			open = slices.Delete(open, at, at+1)
		}

		f.parameters, f.bytes = append(f.parameters, i), f.bytes+bytesOf(p.elements)
		if f.bytes < limit {
			open = append(open, f)
			continue
		}
		buckets = append(buckets, f.parameters)
		limit = r.opts.BucketBytes
	}
	for _, f := range open {
		buckets = append(buckets, f.parameters)
	}
	return buckets
}

// reversed is the order in which backward usually makes gradients ready.
func reversed(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = n - 1 - i
	}
	return order
}

// rearrange arranges the buckets, once, in the order in which the gradients of a rank were ready.
func (r *Reducer) rearrange(ctx context.Context, root int) error {
	if r.isFinal || r.findsUnused() {
		return nil
	}
	r.isFinal = true
	order := slices.Clone(r.step.order)
	for i := range r.params { // those that are never ready come last
		if !slices.Contains(r.step.order, i) {
			order = append(order, i)
		}
	}
	if err := ccl.Broadcast(ctx, r.comm, order, root); err != nil {
		return err
	}
	r.arrange(order)
	return nil
}
