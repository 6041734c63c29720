package reduce

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// element is the Go type of any [Type].
type element interface {
	number | float16 | bfloat16 | complex64 | complex128
}

// isNaN reports whether x is a NaN, also for the types that Go cannot compare.
func isNaN[T element](x T) bool {
	switch x := any(x).(type) {
	case float16:
		return x&0x7fff > 0x7c00
	case bfloat16:
		return x&0x7fff > 0x7f80
	}
	return x != x
}

// oracle defines the operations on T, one element at a time and by other means than the loops.
type oracle[T element] struct {
	typ          Type
	sum, product func(a, b T) T
	divide       func(a T, by int) T
	below        func(a, b T) bool                 // the order of Min and Max; no operand is NaN
	bitwise      func(op Op, a, b T) T             // of integers only
	many         func(op Op, all []T, ranks int) T // nil: every step is rounded to T
	scale        func(a T, factor float64) T
	of           func(i int) T // a small integer, as both parts of a complex number
	special      []T
	any          func(r *rand.Rand) T
}

// tester is an oracle of any type, with its tests and benchmarks.
type tester interface {
	testPair(t *testing.T)
	testAlignment(t *testing.T)
	testPieces(t *testing.T)
	testSpecial(t *testing.T)
	testDivide(t *testing.T)
	testMany(t *testing.T)
	testFold(t *testing.T)
	testLengths(t *testing.T)
	testScan(t *testing.T)
	testScale(t *testing.T)
	testTruth(t *testing.T)
	fuzzMany(t *testing.T, m implementation, c manyCase, data []byte)
	benchmarkPair(b *testing.B)
	benchmarkMany(b *testing.B)
	benchmarkScan(b *testing.B)
}

// testers holds the oracle of each type, at its number.
var testers = [len(types)]tester{
	uint8s, int32s, int64s, float32s, float64s, float16s, bfloat16s,
	int8s, int16s, uint16s, uint32s, uint64s, complex64s, complex128s, bools,
}

// forEachType runs a test once per element type.
func forEachType(t *testing.T, test func(tester, *testing.T)) {
	for typ, o := range testers {
		t.Run(Type(typ).String(), func(t *testing.T) { test(o, t) })
	}
}

// opsOf returns the operations that are defined for a type.
func opsOf(t Type) []Op {
	switch t {
	case Float32, Float64, Float16, BFloat16:
		return []Op{Sum, Avg, Product, Min, Max}
	case Complex64, Complex128:
		return []Op{Sum, Avg, Product}
	case Bool:
		return []Op{Min, Max, BAnd, BOr, BXor}
	}
	return []Op{Sum, Avg, Product, Min, Max, BAnd, BOr, BXor}
}

// forEachImplementation runs a test with each set of loops that this machine can run, not only
// the best.
func forEachImplementation(t *testing.T, f func(*testing.T, implementation)) {
	for _, m := range []implementation{plain, avx2, avx512} {
		t.Run(m.String(), func(t *testing.T) {
			if !slices.Contains(supported, m) {
				t.Skipf("%v is not in this machine, or not in this build", m)
			}
			f(t, m)
		})
	}
}

func (m implementation) String() string {
	return [...]string{plain: "go", avx2: "avx2", avx512: "avx512"}[m]
}

// step returns a op b.
func (o oracle[T]) step(op Op, a, b T) T {
	switch {
	case op == Sum || op == Avg:
		return o.sum(a, b)
	case op == Product:
		return o.product(a, b)
	case op >= BAnd:
		return o.bitwise(op, a, b)
	case isNaN(a) || isNaN(b): // NaN in, NaN out
		return o.sum(a, b)
	case o.below(a, b) == (op == Min):
		return a
	}
	return b
}

// reduce reduces all and, for Avg, divides.
func (o oracle[T]) reduce(op Op, all []T, ranks int) T {
	if o.many != nil {
		return o.many(op, all, ranks)
	}
	acc := all[0]
	for _, x := range all[1:] {
		acc = o.step(op, acc, x)
	}
	if op == Avg {
		acc = o.divide(acc, ranks)
	}
	return acc
}

// same reports whether a and b have the same bits, or are both NaN.
func same[T element](a, b T) bool {
	switch a := any(a).(type) {
	case float32:
		return sameFloats(float64(a), float64(any(b).(float32)))
	case float64:
		return sameFloats(a, any(b).(float64))
	case complex64:
		b := any(b).(complex64)
		return same(real(a), real(b)) && same(imag(a), imag(b))
	case complex128:
		b := any(b).(complex128)
		return same(real(a), real(b)) && same(imag(a), imag(b))
	}
	return a == b || isNaN(a) && isNaN(b)
}

func sameFloats(a, b float64) bool {
	return a != a && b != b || a == b && math.Signbit(a) == math.Signbit(b)
}

// value draws a value: a special one in one of four cases.
func (o oracle[T]) value(r *rand.Rand) T {
	if draw := r.Uint32(); draw%4 == 0 {
		return o.special[(draw>>2)%uint32(len(o.special))]
	}
	return o.any(r)
}

// lengths returns a number of lengths, from 0 on, that suffices: blocks of assembly, single vectors and
// single elements occur in all combinations.
func (o oracle[T]) lengths() int { return min(201, 40+640/o.typ.Size()) }

// Integers of up to 32 bits have sums and products in int64 whose last digits are
// right, so that wrapping is a truncation; 64-bit ones take the low word of the
// unsigned 128-bit result.

var (
	uint8s  = shortInts[uint8](Uint8)
	int32s  = shortInts[int32](Int32)
	int8s   = shortInts[int8](Int8)
	int16s  = shortInts[int16](Int16)
	uint16s = shortInts[uint16](Uint16)
	uint32s = shortInts[uint32](Uint32)
	int64s  = longInts[int64](Int64)
	uint64s = longInts[uint64](Uint64)
	bools   = bytesAsBools()
)

func shortInts[T int8 | int16 | int32 | uint8 | uint16 | uint32](typ Type) oracle[T] {
	o := ints[T](typ)
	o.sum = func(a, b T) T { return T(int64(a) + int64(b)) }
	o.product = func(a, b T) T { return T(int64(a) * int64(b)) }
	o.divide = func(a T, by int) T { return T(int64(math.Trunc(float64(a) / float64(by)))) }
	o.below = func(a, b T) bool { return int64(a)-int64(b) < 0 }
	return o
}

// bytesAsBools draws only 0 and 1.
func bytesAsBools() oracle[uint8] {
	o := shortInts[uint8](Bool)
	o.special, o.any = []uint8{0, 1}, func(r *rand.Rand) uint8 { return uint8(r.Uint32() & 1) }
	return o
}

func longInts[T int64 | uint64](typ Type) oracle[T] {
	o := ints[T](typ)
	o.sum = func(a, b T) T {
		low, _ := bits.Add64(uint64(a), uint64(b), 0)
		return T(low)
	}
	o.product = func(a, b T) T {
		_, low := bits.Mul64(uint64(a), uint64(b))
		return T(low)
	}
	o.divide = func(a T, by int) T {
		if a < 0 {
			return -T(-uint64(a) / uint64(by))
		}
		return T(uint64(a) / uint64(by))
	}
	var sign uint64
	if ^T(0) < 0 {
		sign = 1 << 63
	}
	o.below = func(a, b T) bool { return uint64(a)^sign < uint64(b)^sign }
	return o
}

// ints returns the part of an oracle that all integers share.
func ints[T integer](typ Type) oracle[T] {
	first := T(1) << (8*typ.Size() - 1)
	return oracle[T]{
		typ: typ,
		bitwise: func(op Op, a, b T) T { // in terms of the two others
			switch op {
			case BAnd:
				return ^(^a | ^b)
			case BOr:
				return ^(^a & ^b)
			}
			return (a | b) - (a & b)
		},
		scale: func(a T, factor float64) T { // all digits of the product, then the last ones
			product, _ := big.NewFloat(factor).Int(nil)
			product.Mul(product, big.NewInt(int64(a)))
			return T(product.And(product, new(big.Int).SetUint64(math.MaxUint64)).Uint64())
		},
		of:      func(i int) T { return T(i) },
		special: []T{0, 1, 2, ^T(0), ^T(1), first - 1, first, first + 1},
		any:     func(r *rand.Rand) T { return T(r.Uint64()) },
	}
}

// float64 has more than twice the digits of float32, so that rounding a result
// to the one and then to the other is rounding it once.

var float32s = oracle[float32]{
	typ:     Float32,
	sum:     func(a, b float32) float32 { return float32(float64(a) + float64(b)) },
	product: func(a, b float32) float32 { return float32(float64(a) * float64(b)) },
	divide:  func(a float32, by int) float32 { return a / float32(by) },
	scale:   func(a float32, factor float64) float32 { return float32(float64(float32(factor)) * float64(a)) },
	of:      func(i int) float32 { return float32(i) },
	below:   func(a, b float32) bool { return rankOf(float64(a)) < rankOf(float64(b)) },
	special: []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, 0.1, -0.1,
		float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)),
		math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126,
	},
	any: func(r *rand.Rand) float32 {
		if r.IntN(2) == 0 {
			return float32(r.NormFloat64())
		}
		return math.Float32frombits(r.Uint32())
	},
}

var float64s = oracle[float64]{
	typ:     Float64,
	sum:     func(a, b float64) float64 { return a + b },
	product: func(a, b float64) float64 { return a * b },
	divide:  func(a float64, by int) float64 { return a / float64(by) },
	scale:   func(a float64, factor float64) float64 { return factor * a },
	of:      func(i int) float64 { return float64(i) },
	below:   func(a, b float64) bool { return rankOf(a) < rankOf(b) },
	special: []float64{
		0, math.Copysign(0, -1), 1, -1, 0.1, -0.1,
		math.NaN(), math.Inf(1), math.Inf(-1),
		math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 0x1p-1022,
	},
	any: func(r *rand.Rand) float64 {
		if r.IntN(2) == 0 {
			return r.NormFloat64()
		}
		return math.Float64frombits(r.Uint64())
	},
}

var (
	complex64s = complexOracle(Complex64, float32s,
		func(re, im float32) complex64 { return complex(re, im) },
		func(x complex64) (re, im float32) { return real(x), imag(x) })
	complex128s = complexOracle(Complex128, float64s,
		func(re, im float64) complex128 { return complex(re, im) },
		func(x complex128) (re, im float64) { return real(x), imag(x) })
)

// complexOracle computes with the oracle of the parts, step by step: x-y is x+(-y).
func complexOracle[T complex64 | complex128, P float](typ Type, parts oracle[P], join func(re, im P) T, split func(T) (re, im P)) oracle[T] {
	o := oracle[T]{
		typ: typ,
		sum: func(x, y T) T {
			a, b := split(x)
			c, d := split(y)
			return join(parts.sum(a, c), parts.sum(b, d))
		},
		product: func(x, y T) T {
			a, b := split(x)
			c, d := split(y)
			return join(parts.sum(parts.product(a, c), -parts.product(b, d)), parts.sum(parts.product(a, d), parts.product(b, c)))
		},
		divide: func(x T, by int) T {
			a, b := split(x)
			return join(parts.divide(a, by), parts.divide(b, by))
		},
		scale: func(x T, factor float64) T {
			a, b := split(x)
			return join(parts.scale(a, factor), parts.scale(b, factor))
		},
		of:  func(i int) T { return join(P(i), P(i)) },
		any: func(r *rand.Rand) T { return join(parts.any(r), parts.any(r)) },
	}
	for i, re := range parts.special {
		for k, im := range parts.special {
			if (i+k)%4 == 0 { // some of each
				o.special = append(o.special, join(re, im))
			}
		}
	}
	return o
}

// rankOf maps floats that are not NaN to integers in the same order, with -0
// just below +0.
func rankOf(x float64) int64 {
	b := int64(math.Float64bits(x))
	if b < 0 {
		return math.MinInt64 - b - 1
	}
	return b
}
