package reduce

import "unsafe"

// Pair reduces two buffers of n elements of type t: dst[i] = a[i] op b[i]. dst may
// be a or b exactly; otherwise it overlaps neither. For [Avg] it is [Sum]: the
// division comes once, at the end, by [Divide].
func Pair(t Type, op Op, dst, a, b unsafe.Pointer, n int) { best.pair(t, op, dst, a, b, n) }

func (m implementation) pair(t Type, op Op, dst, a, b unsafe.Pointer, n int) {
	if op == Avg {
		op = Sum // for assembly too
	}
	if size := t.Size(); n*size >= vectorBytes {
		dsts, srcs := [...]unsafe.Pointer{dst}, [...]unsafe.Pointer{a, b}
		done := m.reduce(t, op, dsts[:], srcs[:], 0, n*size, 1, false)
		dst, a, b, n = unsafe.Add(dst, done), unsafe.Add(a, done), unsafe.Add(b, done), n-done/size
	}
	if n > 0 {
		pairs[t][op](dst, a, b, n)
	}
}

// Divide is the epilogue of [Avg] for type t: it divides n elements at p by `by`,
// in place, with 1 <= by <= 1<<31-1. Floats are rounded as by one true division,
// both parts of a complex number too, integers are truncated toward zero.
func Divide(t Type, p unsafe.Pointer, n, by int) { best.divide(t, p, n, by) }

func (m implementation) divide(t Type, p unsafe.Pointer, n, by int) {
	ps := [...]unsafe.Pointer{p}
	done := m.reduce(t, Avg, ps[:], ps[:], 0, n*t.Size(), by, false)
	if rest := n - done/t.Size(); rest > 0 {
		divisions[t](unsafe.Add(p, done), rest, by)
	}
}

// pairs holds the loops in Go, where the operation is defined. Avg is Sum: the division comes
// later.
var pairs = [len(types)][len(ops)]func(dst, a, b unsafe.Pointer, n int){
	Uint8:      integerLoops[uint8](),
	Int32:      integerLoops[int32](),
	Int64:      integerLoops[int64](),
	Float32:    numberLoops[float32](),
	Float64:    numberLoops[float64](),
	Float16:    halfLoops(Float16),
	BFloat16:   halfLoops(BFloat16),
	Int8:       integerLoops[int8](),
	Int16:      integerLoops[int16](),
	Uint16:     integerLoops[uint16](),
	Uint32:     integerLoops[uint32](),
	Uint64:     integerLoops[uint64](),
	Complex64:  complexLoops[float32](),
	Complex128: complexLoops[float64](),
	Bool:       boolLoops(),
}

type loops = [len(ops)]func(dst, a, b unsafe.Pointer, n int)

func integerLoops[T integer]() loops {
	all := numberLoops[T]()
	all[BAnd], all[BOr], all[BXor] = andAt[T], orAt[T], xorAt[T]
	return all
}

func numberLoops[T number]() loops {
	return loops{
		Sum:     sumAt[T],
		Avg:     sumAt[T],
		Product: productAt[T],
		Min:     minimumAt[T],
		Max:     maximumAt[T],
	}
}

// boolLoops are those of bytes: of 0 and 1 they give 0 and 1.
func boolLoops() loops {
	all := integerLoops[uint8]()
	all[Sum], all[Avg], all[Product] = nil, nil, nil
	return all
}

// complexLoops takes the type of the parts.
func complexLoops[T float]() loops {
	return loops{
		Sum:     sumComplexAt[T],
		Avg:     sumComplexAt[T],
		Product: func(dst, a, b unsafe.Pointer, n int) { productComplexAt[T](dst, a, b, 2*n) },
	}
}

var divisions = [len(types)]func(p unsafe.Pointer, n, by int){
	Uint8:      func(p unsafe.Pointer, n, by int) { divideShorts(view[uint8](p, n), by) },
	Int32:      func(p unsafe.Pointer, n, by int) { divideInts(view[int32](p, n), by) },
	Int64:      func(p unsafe.Pointer, n, by int) { divideInts(view[int64](p, n), by) },
	Float32:    func(p unsafe.Pointer, n, by int) { divideFloats(view[float32](p, n), by) },
	Float64:    func(p unsafe.Pointer, n, by int) { divideFloats(view[float64](p, n), by) },
	Float16:    halfDivision(Float16),
	BFloat16:   halfDivision(BFloat16),
	Int8:       func(p unsafe.Pointer, n, by int) { divideShorts(view[int8](p, n), by) },
	Int16:      func(p unsafe.Pointer, n, by int) { divideShorts(view[int16](p, n), by) },
	Uint16:     func(p unsafe.Pointer, n, by int) { divideShorts(view[uint16](p, n), by) },
	Uint32:     func(p unsafe.Pointer, n, by int) { divideInts(view[uint32](p, n), by) },
	Uint64:     func(p unsafe.Pointer, n, by int) { divideInts(view[uint64](p, n), by) },
	Complex64:  func(p unsafe.Pointer, n, by int) { divideFloats(view[float32](p, 2*n), by) },
	Complex128: func(p unsafe.Pointer, n, by int) { divideFloats(view[float64](p, 2*n), by) },
}

func sumAt[T number](dst, a, b unsafe.Pointer, n int) {
	sum(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func sumComplexAt[T float](dst, a, b unsafe.Pointer, n int) { sumAt[T](dst, a, b, 2*n) }

func productAt[T number](dst, a, b unsafe.Pointer, n int) {
	product(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func productComplexAt[T float](dst, a, b unsafe.Pointer, n int) {
	productComplex(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func minimumAt[T number](dst, a, b unsafe.Pointer, n int) {
	minimum(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func maximumAt[T number](dst, a, b unsafe.Pointer, n int) {
	maximum(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func andAt[T integer](dst, a, b unsafe.Pointer, n int) {
	and(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func orAt[T integer](dst, a, b unsafe.Pointer, n int) {
	or(view[T](dst, n), view[T](a, n), view[T](b, n))
}

func xorAt[T integer](dst, a, b unsafe.Pointer, n int) {
	xor(view[T](dst, n), view[T](a, n), view[T](b, n))
}

// view makes a slice of the n elements at p, which may be nil if n is 0.
func view[T number | float16 | bfloat16](p unsafe.Pointer, n int) []T {
	return unsafe.Slice((*T)(p), n)
}
