package ddp

import (
	"github.com/goccl/goccl/ccl"
)

// Bucket is a group of gradients that are reduced by one call.
type Bucket[T Float] struct {
	Index      int               // 0 is reduced first
	Parameters []int             // their numbers, in the order of the gradients
	Gradients  []T               // the gradients of all of them, then Finish's result
	Comm       *ccl.Communicator // the group of the Reducer
	Op         ccl.Op            // Avg; Sum within Join, which divides after Finish
	State      any               // the hook's own

	pending int // parameters that are not ready in this step
	work    *ccl.Work
	sums    []float32 // of Float16 gradients, within Join and without a Hook
}

// assign divides parameters among buckets: in the given order, a bucket ends with the parameter by which it
// reaches its size. first is the size of the first bucket, rest of the others, in bytes. A parameter whose gradient is reduced in
// place has a bucket of its own.
func assign(sizes, order []int, first, rest int, inPlace []bool) (buckets [][]int) {
	limit, filled := first, 0
	var bucket []int
	for _, i := range order {
		if inPlace[i] {
			buckets = append(buckets, []int{i})
			continue
		}
		bucket = append(bucket, i)
		if filled += sizes[i]; filled >= limit {
			buckets, bucket = append(buckets, bucket), nil
			limit, filled = rest, 0
		}
	}
	if bucket != nil {
		buckets = append(buckets, bucket)
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

// place is where the gradient of a parameter lies in the memory of buckets.
type place struct {
	bucket int
	lo, hi int // in the bucket
}

// arrange makes the buckets in the memory, each at a multiple of a pair of cache lines, and returns where gradients
// lie. The memory has room, see room. The bucket of a gradient that is reduced in place is the gradient.
func arrange[T Float](memory []T, params []Parameter[T], buckets [][]int, inPlace []bool) (made []*Bucket[T], places []place) {
	places = make([]place, len(params))
	at := 0
	for b, of := range buckets {
		if i := of[0]; inPlace[i] {
			places[i] = place{b, 0, len(params[i].Grad)}
			made = append(made, &Bucket[T]{Index: b, Parameters: of, Gradients: params[i].Grad})
			continue
		}
		n := 0
		for _, i := range of {
			places[i] = place{b, n, n + len(params[i].Data)}
			n += len(params[i].Data)
		}
		n = max(n, 1) // a collective has an element at least, and all parameters of a bucket may be empty
		made = append(made, &Bucket[T]{Index: b, Parameters: of, Gradients: memory[at : at+n : at+n]})
		at += align[T](n)
	}
	return made, places
}

// room returns the elements that arrange needs for any division into buckets.
func room[T Float](params []Parameter[T], inPlace []bool) (n int) {
	for i, p := range params {
		if !inPlace[i] {
			n += len(p.Data) + align[T](1)
		}
	}
	return n
}

// align rounds up to whole pairs of cache lines.
func align[T Float](n int) int {
	unit := 128 / ccl.DTypeOf[T]().Size()
	return (n + unit - 1) / unit * unit
}

// inPlaceBytes is the length from which a gradient is worth a call of its own, which saves the copies to a bucket and back.
const inPlaceBytes = 256 << 10

// reducesInPlace reports whether a gradient of the program's own is reduced where it is. A hook gets buckets of the size
// that is asked for, and a gradient that may be unused must keep its value.
func (r *Reducer[T]) reducesInPlace(p Parameter[T]) bool {
	return p.Grad != nil && len(p.Grad)*ccl.DTypeOf[T]().Size() >= inPlaceBytes &&
		r.opts.Hook == nil && !r.opts.FindUnused && !r.opts.StaticGraph
}

// arrange makes the buckets of parameters in an order.
func (r *Reducer[T]) arrange(order []int) {
	sizes := make([]int, len(r.lengths))
	for i, n := range r.lengths {
		sizes[i] = n * ccl.DTypeOf[T]().Size()
	}
	r.buckets, r.places = arrange(r.memory, r.params, assign(sizes, order, r.opts.FirstBucketBytes, r.opts.BucketBytes, r.inPlace), r.inPlace)
	for _, b := range r.buckets {
		b.Comm, b.pending = r.comm, len(b.Parameters)
		r.setOp(b)
	}
}
