package reduce

import "unsafe"

// Func folds n elements: dst[i] = a[i] op b[i]. dst may be a or b exactly;
// otherwise it overlaps neither. With n == 0 no pointer is used.
type Func func(dst, a, b unsafe.Pointer, n int)

// Pair returns the loop that folds two buffers of type t with op. For [Avg] it
// is the loop of [Sum]: the division comes once, at the end, by [Divide].
func Pair(t Type, op Op) Func { return pairs[t][op] }

// Divide returns the epilogue of [Avg] for type t: it divides n elements at p
// by `by`, in place, with 1 <= by <= 1<<31-1. Floats are rounded as by one true
// division, integers are truncated toward zero.
func Divide(t Type) func(p unsafe.Pointer, n, by int) { return divisions[t] }

var pairs = [len(types)][len(ops)]Func{
	Uint8:   loops[uint8](),
	Int32:   loops[int32](),
	Int64:   loops[int64](),
	Float32: loops[float32](),
	Float64: loops[float64](),
}

func loops[T number]() [len(ops)]Func {
	return [len(ops)]Func{
		Sum:     sumAt[T],
		Avg:     sumAt[T],
		Product: productAt[T],
		Min:     minimumAt[T],
		Max:     maximumAt[T],
	}
}

var divisions = [len(types)]func(p unsafe.Pointer, n, by int){
	Uint8:   func(p unsafe.Pointer, n, by int) { divideBytes(view[uint8](p, n), by) },
	Int32:   func(p unsafe.Pointer, n, by int) { divideInts(view[int32](p, n), by) },
	Int64:   func(p unsafe.Pointer, n, by int) { divideInts(view[int64](p, n), by) },
	Float32: func(p unsafe.Pointer, n, by int) { divideFloats(view[float32](p, n), by) },
	Float64: func(p unsafe.Pointer, n, by int) { divideFloats(view[float64](p, n), by) },
}

func sumAt[T number](dst, a, b unsafe.Pointer, n int) {
	sum(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func productAt[T number](dst, a, b unsafe.Pointer, n int) {
	product(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func minimumAt[T number](dst, a, b unsafe.Pointer, n int) {
	minimum(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func maximumAt[T number](dst, a, b unsafe.Pointer, n int) {
	maximum(view[T](dst, n), view[T](a, n), view[T](b, n))
}

// view makes a slice of the n elements at p, which may be nil if n is 0.
func view[T number](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }
