package measure

import (
	"math"
	"math/bits"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// elements has what is needed to make inputs of a type and to verify results: Go has no
// arithmetic for all element types.
type elements[T ccl.Element] struct {
	of     func(n int) T // element n; exact up to most
	most   int
	base   T                         // powers of it are exact
	reduce func(op ccl.Op, a, b T) T // of defined operations
	divide func(sum T, by int) T     // of types that have Avg
}

// runOf is the part of a rank in a collective, for each type.
var runOf = map[ccl.DType]runRank{
	ccl.Uint8:      runCollective(integers[uint8]()),
	ccl.Int8:       runCollective(integers[int8]()),
	ccl.Uint16:     runCollective(integers[uint16]()),
	ccl.Int16:      runCollective(integers[int16]()),
	ccl.Uint32:     runCollective(integers[uint32]()),
	ccl.Int32:      runCollective(integers[int32]()),
	ccl.Uint64:     runCollective(integers[uint64]()),
	ccl.Int64:      runCollective(integers[int64]()),
	ccl.Float32:    runCollective(floats[float32](1 << 24)),
	ccl.Float64:    runCollective(floats[float64](min(1<<53, math.MaxInt))),
	ccl.Float16:    runCollective(halves(half.NewFloat16, 1<<11)),
	ccl.BFloat16:   runCollective(halves(half.NewBFloat16, 1<<8)),
	ccl.Complex64:  runCollective(complexes[complex64](1 << 24)),
	ccl.Complex128: runCollective(complexes[complex128](min(1<<53, math.MaxInt))),
	ccl.Bool:       runCollective(bools()),
}

func runCollective[T ccl.Element](e elements[T]) runRank { return runAs(e, addCollective) }

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// integers wrap: all sums are exact.
func integers[T integer]() elements[T] {
	return elements[T]{
		of:   func(n int) T { return T(n) },
		most: math.MaxInt,
		base: 2,
		reduce: func(op ccl.Op, a, b T) T {
			switch op {
			case ccl.BAnd:
				return a & b
			case ccl.BOr:
				return a | b
			case ccl.BXor:
				return a ^ b
			case ccl.LAnd, ccl.LOr, ccl.LXor:
				if logical(op, a != 0, b != 0) {
					return 1
				}
				return 0
			}
			return reduceNumbers(op, a, b)
		},
		divide: func(sum T, by int) T {
			if T(0)-1 > 0 { // unsigned
				return T(uint64(sum) / uint64(by))
			}
			return T(int64(sum) / int64(by))
		},
	}
}

// bools have no arithmetic.
func bools() elements[bool] {
	return elements[bool]{
		of:     func(n int) bool { return bits.OnesCount(uint(n))%2 != 0 }, // neighbours differ, in no short pattern
		most:   math.MaxInt,
		reduce: logical,
	}
}

// logical returns a op b, of an operation that bools have.
func logical(op ccl.Op, a, b bool) bool {
	switch op {
	case ccl.Min, ccl.BAnd, ccl.LAnd:
		return a && b
	case ccl.Max, ccl.BOr, ccl.LOr:
		return a || b
	}
	return a != b
}

func floats[T float32 | float64](most int) elements[T] {
	return elements[T]{
		of:     func(n int) T { return T(n) },
		most:   most,
		base:   2,
		reduce: reduceNumbers[T],
		divide: func(sum T, by int) T { return sum / T(by) },
	}
}

// reduceNumbers returns a op b, where op is not one of bits.
func reduceNumbers[T integer | float32 | float64](op ccl.Op, a, b T) T {
	switch op {
	case ccl.Product:
		return a * b
	case ccl.Min:
		return min(a, b)
	case ccl.Max:
		return max(a, b)
	}
	return a + b
}

func halves[T interface {
	half.Float16 | half.BFloat16
	Float32() float32
}](round func(float32) T, most int) elements[T] {
	return elements[T]{
		of:     func(n int) T { return round(float32(n)) },
		most:   most,
		base:   round(2),
		reduce: func(op ccl.Op, a, b T) T { return round(reduceNumbers(op, a.Float32(), b.Float32())) },
		divide: func(sum T, by int) T { return round(sum.Float32() / float32(by)) },
	}
}

// complexes have two different parts, so that exchanged parts are noticed.
func complexes[T complex64 | complex128](most int) elements[T] {
	return elements[T]{
		of:   func(n int) T { return T(complex(float64(n), float64(1-n))) },
		most: most,
		base: 1i, // its powers have modulus 1
		reduce: func(op ccl.Op, a, b T) T {
			if op == ccl.Product {
				return a * b
			}
			return a + b
		},
		divide: func(sum T, by int) T {
			x, n := complex128(sum), float64(by)
			return T(complex(real(x)/n, imag(x)/n))
		},
	}
}
