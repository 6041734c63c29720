package reduce

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPair(t *testing.T) {
	forEachType(t, tester.testPair)
}

func (o oracle[T]) testPair(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, op := range opsOf(o.typ) {
			for n := range o.lengths() {
				for offset := range 2 {
					a := newBuffer(o, r, n, n+offset)
					b := newBuffer(o, r, n, 3*n+offset)
					dst := newBuffer(o, r, n, 5*n+2*offset)
					checkPair(t, m, o, op, dst, a, b, "disjoint")
				}
				a, b := newBuffer(o, r, n, n), newBuffer(o, r, n, n/8)
				checkPair(t, m, o, op, a.clone(), b, b, "a is b")
				checkPair(t, m, o, op, a, a, b, "dst is a")
				checkPair(t, m, o, op, b, a, b, "dst is b")
				checkPair(t, m, o, op, a, a, a, "dst is a and b")
			}
		}
	})
}

// Each operand has every distance from a cache line that its element size allows.
func TestPairAlignment(t *testing.T) {
	forEachType(t, tester.testAlignment)
}

func (o oracle[T]) testAlignment(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(13, 14))
		lines := 64 / o.typ.Size()
		for _, op := range opsOf(o.typ) {
			for _, n := range []int{1, lines - 1, lines + 1, 4*lines + 3} {
				for offset := range lines {
					for moved := range 3 {
						offsets := [3]int{}
						offsets[moved] = offset
						dst, a, b := newBuffer(o, r, n, offsets[0]), newBuffer(o, r, n, offsets[1]), newBuffer(o, r, n, offsets[2])
						checkPair(t, m, o, op, dst, a, b, "disjoint")
					}
					a, b := newBuffer(o, r, n, offset), newBuffer(o, r, n, 0)
					checkPair(t, m, o, op, a, a, b, "dst is a")
				}
			}
		}
	})
}

// Buffers that are too long for one call of assembly are reduced in pieces.
func TestPairPieces(t *testing.T) {
	forEachType(t, tester.testPieces)
}

func (o oracle[T]) testPieces(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(15, 16))
		n := 200<<10/o.typ.Size() + 7
		a, b := newBuffer(o, r, n, 1), newBuffer(o, r, n, 0)
		checkPair(t, m, o, opsOf(o.typ)[0], a, a, b, "dst is a")
	})
}

// checkPair reduces, then compares all three buffers. The buffers other than dst must not change.
func checkPair[T element](t *testing.T, m implementation, o oracle[T], op Op, dst, a, b buffer[T], how string) {
	t.Helper()
	want, wantA, wantB := dst.clone(), a.clone(), b.clone()
	for i := range want.body() {
		want.body()[i] = o.step(op, wantA.body()[i], wantB.body()[i])
	}
	m.pair(o.typ, op, dst.at(), a.at(), b.at(), len(want.body()))
	dst.require(t, want, "%v %v, %s, dst:", op, o.typ, how)
	if a.at() != dst.at() {
		a.require(t, wantA, "%v %v, %s, a:", op, o.typ, how)
	}
	if b.at() != dst.at() {
		b.require(t, wantB, "%v %v, %s, b:", op, o.typ, how)
	}
}

// Every special value is combined with every other one: signs, infinities, NaN on either side, overflow.
func TestPairSpecialValues(t *testing.T) {
	forEachType(t, tester.testSpecial)
}

func (o oracle[T]) testSpecial(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	n := len(o.special) * len(o.special)
	a, b := newBuffer(o, r, n, 0), newBuffer(o, r, n, 0)
	for i, x := range o.special {
		for j, y := range o.special {
			a.body()[i*len(o.special)+j], b.body()[i*len(o.special)+j] = x, y
		}
	}
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for _, op := range opsOf(o.typ) {
			checkPair(t, m, o, op, newBuffer(o, r, n, 0), a, b, "special values")
		}
	})
}

// The promised bits as literals: the test also fails if oracle and loops change together.
func TestPairPromises(t *testing.T) {
	t.Run("uint8", func(t *testing.T) {
		promises(t, Uint8, []promise[uint8]{
			{200, Sum, 100, 44},
			{16, Product, 17, 16},
			{200, Min, 100, 100}, // unsigned: as a signed byte 200 is negative
			{200, Max, 100, 200},
			{0b1100, BAnd, 0b1010, 0b1000}, {0b1100, BOr, 0b1010, 0b1110}, {0b1100, BXor, 0b1010, 0b0110},
		})
	})
	t.Run("int32", func(t *testing.T) {
		promises(t, Int32, []promise[int32]{
			{math.MaxInt32, Sum, 1, math.MinInt32},
			{math.MinInt32, Product, -1, math.MinInt32},
			{-5, Min, 3, -5}, {3, Min, -5, -5}, {-5, Min, -3, -5}, {5, Min, 3, 3},
			{-5, Max, 3, 3}, {3, Max, -5, 3}, {-5, Max, -3, -3}, {5, Max, 3, 5},
			{math.MinInt32, Min, math.MaxInt32, math.MinInt32}, // their difference overflows
			{math.MinInt32, Max, math.MaxInt32, math.MaxInt32},
		})
	})
	t.Run("int64", func(t *testing.T) {
		promises(t, Int64, []promise[int64]{
			{math.MaxInt64, Sum, 1, math.MinInt64},
			{1<<53 + 1, Sum, 0, 1<<53 + 1}, // not computed in float64
			{math.MinInt64, Product, -1, math.MinInt64},
			{1<<32 + 1, Product, 1<<32 + 1, 1<<33 + 1},
			{-5, Min, 3, -5}, {3, Min, -5, -5}, {-5, Min, -3, -5}, {5, Min, 3, 3},
			{-5, Max, 3, 3}, {3, Max, -5, 3}, {-5, Max, -3, -3}, {5, Max, 3, 5},
			{math.MinInt64, Min, math.MaxInt64, math.MinInt64},
			{math.MinInt64, Max, math.MaxInt64, math.MaxInt64},
		})
	})
	t.Run("int8", func(t *testing.T) {
		promises(t, Int8, []promise[int8]{
			{100, Sum, 100, -56}, {-128, Product, -1, -128}, {-1, Min, 1, -1}, {-1, Max, 1, 1},
			{-4, BAnd, 7, 4}, {-4, BOr, 3, -1}, {-4, BXor, -1, 3},
		})
	})
	t.Run("bool", func(t *testing.T) {
		promises(t, Bool, []promise[uint8]{
			{0, Min, 1, 0}, {1, Min, 1, 1}, {0, Max, 1, 1}, {0, Max, 0, 0},
			{1, BAnd, 0, 0}, {1, BAnd, 1, 1}, {1, BOr, 0, 1}, {0, BOr, 0, 0}, {1, BXor, 1, 0}, {1, BXor, 0, 1},
		})
	})
	t.Run("int16", func(t *testing.T) {
		promises(t, Int16, []promise[int16]{
			{math.MaxInt16, Sum, 1, math.MinInt16}, {math.MinInt16, Product, -1, math.MinInt16},
			{255, Sum, 1, 256}, // a carry into the second byte
			{-1, Min, 1, -1}, {-1, Max, 1, 1}, {0x7f0f, BAnd, 0x0ff0, 0x0f00},
		})
	})
	t.Run("uint16", func(t *testing.T) {
		promises(t, Uint16, []promise[uint16]{
			{math.MaxUint16, Sum, 2, 1}, {0x101, Product, 0x101, 0x201},
			{0x8000, Min, 1, 1}, {0x8000, Max, 1, 0x8000}, {0xff00, BXor, 0x0ff0, 0xf0f0},
		})
	})
	t.Run("uint32", func(t *testing.T) {
		promises(t, Uint32, []promise[uint32]{
			{math.MaxUint32, Sum, 2, 1}, {1<<16 + 1, Product, 1<<16 + 1, 1<<17 + 1},
			{1 << 31, Min, 1, 1}, {1 << 31, Max, 1, 1 << 31}, {0xffff_0000, BOr, 0x0ff0, 0xffff_0ff0},
		})
	})
	t.Run("uint64", func(t *testing.T) {
		promises(t, Uint64, []promise[uint64]{
			{math.MaxUint64, Sum, 2, 1}, {1<<32 + 1, Product, 1<<32 + 1, 1<<33 + 1},
			{1 << 63, Min, 1, 1}, {1 << 63, Max, 1, 1 << 63}, {1<<63 + 1, BAnd, 1<<63 + 2, 1 << 63},
		})
	})
	t.Run("complex64", func(t *testing.T) { promises(t, Complex64, complexPromises[complex64](math.MaxFloat32)) })
	t.Run("complex128", func(t *testing.T) { promises(t, Complex128, complexPromises[complex128](math.MaxFloat64)) })
	t.Run("products are rounded before they are subtracted", func(t *testing.T) {
		const e32, e64 = 0x1p-12, 0x1p-27
		promises(t, Complex64, []promise[complex64]{
			{complex(1+e32, 1), Product, complex(1+e32, 1+2*e32), complex(0, 2+4*e32)},
		})
		promises(t, Complex128, []promise[complex128]{
			{complex(1+e64, 1), Product, complex(1+e64, 1+2*e64), complex(0, 2+4*e64)},
		})
	})
	t.Run("float32", func(t *testing.T) { promises(t, Float32, floatPromises[float32](math.MaxFloat32, 1<<24)) })
	t.Run("float64", func(t *testing.T) { promises(t, Float64, floatPromises[float64](math.MaxFloat64, 1<<53)) })
	t.Run("float16", func(t *testing.T) {
		promises(t, Float16, narrowed(binary16, floatPromises[float64](65504, 1<<11)))
	})
	t.Run("bfloat16", func(t *testing.T) {
		promises(t, BFloat16, narrowed(brain16, floatPromises[float64](0x1.fep127, 1<<8)))
	})
}

// promise is one row of a table: a op b is want.
type promise[T element] struct {
	a    T
	op   Op
	b    T
	want T
}

// floatPromises takes the largest finite number, and the first integer x for which x+1 is not
// representable.
func floatPromises[T float32 | float64](largest, coarse T) []promise[T] {
	zero, inf, nan := T(0), T(math.Inf(1)), T(math.NaN())
	negative := T(math.Copysign(0, -1))
	return []promise[T]{
		{negative, Sum, negative, negative}, {negative, Sum, zero, zero},
		{inf, Sum, -inf, nan}, {largest, Sum, largest, inf}, {coarse, Sum, 1, coarse},
		{inf, Product, zero, nan}, {-1, Product, zero, negative}, {largest, Product, -2, -inf},
		{zero, Min, negative, negative}, {negative, Min, zero, negative},
		{zero, Max, negative, zero}, {negative, Max, zero, zero},
		{nan, Min, 1, nan}, {1, Min, nan, nan}, {nan, Max, 1, nan}, {1, Max, nan, nan},
		{nan, Min, -inf, nan}, {-inf, Min, nan, nan}, {nan, Max, inf, nan}, {inf, Max, nan, nan},
		{-inf, Min, -largest, -inf}, {inf, Max, largest, inf},
		{-5, Min, 3, -5}, {3, Min, -5, -5}, {-5, Max, -3, -3}, {3, Max, -5, 3},
	}
}

// complexPromises takes the largest finite part.
func complexPromises[T complex64 | complex128](largest T) []promise[T] {
	inf, nan := T(complex(math.Inf(1), 0)), T(complex(math.NaN(), math.NaN()))
	infs := T(complex(math.Inf(1), math.Inf(1)))
	return []promise[T]{
		{1 + 2i, Sum, 3 - 5i, 4 - 3i},
		{1 + 2i, Product, 3 - 5i, 13 + 1i},
		{1i, Product, 1i, -1},
		{largest + 1i, Sum, largest + 2i, inf + 3i},
		{infs, Product, infs, T(complex(math.NaN(), math.Inf(1)))}, // the real part is inf - inf
		{infs, Product, 0, nan},
	}
}

// narrowed returns a table of float64s as a table of halves.
func narrowed[T float16 | bfloat16](f format[T], table []promise[float64]) []promise[T] {
	var halves []promise[T]
	for _, p := range table {
		halves = append(halves, promise[T]{f.nearest(p.a), p.op, f.nearest(p.b), f.nearest(p.want)})
	}
	return halves
}

func promises[T element](t *testing.T, typ Type, table []promise[T]) {
	const n = 300 // several blocks and a tail
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for _, p := range table {
			a, b, dst, want := full(n, p.a), full(n, p.b), full(n, p.a), full(n, p.a)
			copy(want.body(), full(n, p.want).body())
			m.pair(typ, p.op, dst.at(), a.at(), b.at(), n)
			dst.require(t, want, "%v %v %v:", p.a, p.op, p.b)
		}
	})
}
