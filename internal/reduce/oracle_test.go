package reduce

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// element is the Go type of any [Type].
type element interface{ number | float16 | bfloat16 }

// of returns an integer that has a T.
func of[T element](i int) T {
	switch any(T(0)).(type) {
	case float16:
		return T(toFloat16(float32(i)))
	case bfloat16:
		return T(toBFloat16(float32(i)))
	}
	return T(i)
}

// isNaN says it of the types that Go cannot compare as well.
func isNaN[T element](x T) bool {
	switch x := any(x).(type) {
	case float16:
		return x&0x7fff > 0x7c00
	case bfloat16:
		return x&0x7fff > 0x7f80
	}
	return x != x
}

// oracle says, one element at a time and by other means than the loops, what
// the operations on T are.
type oracle[T element] struct {
	typ          Type
	sum, product func(a, b T) T
	divide       func(a T, by int) T
	below        func(a, b T) bool                 // the order of Min and Max; no operand is NaN
	many         func(op Op, all []T, ranks int) T // nil: every step is rounded to T
	special      []T
	any          func(r *rand.Rand) T
}

// forEachType runs a test once per element type. Generic functions are no
// values, hence one argument for each.
func forEachType(t *testing.T,
	u8 func(*testing.T, oracle[uint8]),
	i32 func(*testing.T, oracle[int32]),
	i64 func(*testing.T, oracle[int64]),
	f32 func(*testing.T, oracle[float32]),
	f64 func(*testing.T, oracle[float64]),
	f16 func(*testing.T, oracle[float16]),
	bf16 func(*testing.T, oracle[bfloat16]),
) {
	t.Run("uint8", func(t *testing.T) { u8(t, uint8s) })
	t.Run("int32", func(t *testing.T) { i32(t, int32s) })
	t.Run("int64", func(t *testing.T) { i64(t, int64s) })
	t.Run("float32", func(t *testing.T) { f32(t, float32s) })
	t.Run("float64", func(t *testing.T) { f64(t, float64s) })
	t.Run("float16", func(t *testing.T) { f16(t, float16s) })
	t.Run("bfloat16", func(t *testing.T) { bf16(t, bfloat16s) })
}

// forEachImplementation runs a test with each set of loops, those of this machine
// that are not its best included.
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

// fold is one step: a op b.
func (o oracle[T]) fold(op Op, a, b T) T {
	switch {
	case op == Sum || op == Avg:
		return o.sum(a, b)
	case op == Product:
		return o.product(a, b)
	case isNaN(a) || isNaN(b): // NaN in, NaN out
		return o.sum(a, b)
	case o.below(a, b) == (op == Min):
		return a
	}
	return b
}

// reduce is a fold of all, and for Avg the division.
func (o oracle[T]) reduce(op Op, all []T, ranks int) T {
	if o.many != nil {
		return o.many(op, all, ranks)
	}
	acc := all[0]
	for _, x := range all[1:] {
		acc = o.fold(op, acc, x)
	}
	if op == Avg {
		acc = o.divide(acc, ranks)
	}
	return acc
}

// same compares bits, but for NaN, of which there are many.
func same[T element](a, b T) bool {
	if isNaN(a) || isNaN(b) {
		return isNaN(a) && isNaN(b)
	}
	return a == b && math.Signbit(float64(a)) == math.Signbit(float64(b))
}

// value draws a special value once in four times.
func (o oracle[T]) value(r *rand.Rand) T {
	if r.IntN(4) == 0 {
		return o.special[r.IntN(len(o.special))]
	}
	return o.any(r)
}

// Integers of up to 32 bits are exact in int64, so that wrapping is a
// truncation; 64-bit ones take the low word of the unsigned 128-bit result.

var uint8s = oracle[uint8]{
	typ:     Uint8,
	sum:     func(a, b uint8) uint8 { return uint8(int64(a) + int64(b)) },
	product: func(a, b uint8) uint8 { return uint8(int64(a) * int64(b)) },
	divide:  func(a uint8, by int) uint8 { return uint8(math.Floor(float64(a) / float64(by))) },
	below:   func(a, b uint8) bool { return int64(a)-int64(b) < 0 },
	special: []uint8{0, 1, 2, 127, 128, 129, 254, 255},
	any:     func(r *rand.Rand) uint8 { return uint8(r.Uint32()) },
}

var int32s = oracle[int32]{
	typ:     Int32,
	sum:     func(a, b int32) int32 { return int32(int64(a) + int64(b)) },
	product: func(a, b int32) int32 { return int32(int64(a) * int64(b)) },
	divide:  func(a int32, by int) int32 { return int32(math.Trunc(float64(a) / float64(by))) },
	below:   func(a, b int32) bool { return int64(a)-int64(b) < 0 },
	special: []int32{0, 1, -1, 2, -2, math.MaxInt32, math.MinInt32, math.MinInt32 + 1},
	any:     func(r *rand.Rand) int32 { return int32(r.Uint32()) },
}

var int64s = oracle[int64]{
	typ: Int64,
	sum: func(a, b int64) int64 {
		low, _ := bits.Add64(uint64(a), uint64(b), 0)
		return int64(low)
	},
	product: func(a, b int64) int64 {
		_, low := bits.Mul64(uint64(a), uint64(b))
		return int64(low)
	},
	divide: func(a int64, by int) int64 {
		if a < 0 {
			return -int64(-uint64(a) / uint64(by))
		}
		return int64(uint64(a) / uint64(by))
	},
	below:   func(a, b int64) bool { return uint64(a)^1<<63 < uint64(b)^1<<63 },
	special: []int64{0, 1, -1, 2, -2, math.MaxInt64, math.MinInt64, math.MinInt64 + 1},
	any:     func(r *rand.Rand) int64 { return int64(r.Uint64()) },
}

// float64 has more than twice the digits of float32, so that rounding a result
// to the one and then to the other is rounding it once.

var float32s = oracle[float32]{
	typ:     Float32,
	sum:     func(a, b float32) float32 { return float32(float64(a) + float64(b)) },
	product: func(a, b float32) float32 { return float32(float64(a) * float64(b)) },
	divide:  func(a float32, by int) float32 { return a / float32(by) },
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

// rankOf maps floats that are not NaN to integers in the same order, with -0
// just below +0.
func rankOf(x float64) int64 {
	b := int64(math.Float64bits(x))
	if b < 0 {
		return math.MinInt64 - b - 1
	}
	return b
}
