package reduce

import (
	"math"
	"math/rand/v2"
	"testing"
)

var allOps = []Op{Sum, Avg, Product, Min, Max}

func TestPair(t *testing.T) {
	forEachType(t, testPair[uint8], testPair[int32], testPair[int64], testPair[float32], testPair[float64], testPair[float16], testPair[bfloat16])
}

func testPair[T element](t *testing.T, o oracle[T]) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, op := range allOps {
			for n := range 201 {
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

// Each operand at every distance from a cache line that its elements allow.
func TestPairAlignment(t *testing.T) {
	forEachType(t, testAlignment[uint8], testAlignment[int32], testAlignment[int64], testAlignment[float32], testAlignment[float64], testAlignment[float16], testAlignment[bfloat16])
}

func testAlignment[T element](t *testing.T, o oracle[T]) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(13, 14))
		lines := 64 / o.typ.Size()
		for _, op := range allOps {
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

// Above the bytes of one call of assembly the work is cut to pieces.
func TestPairPieces(t *testing.T) {
	forEachType(t, testPieces[uint8], testPieces[int32], testPieces[int64], testPieces[float32], testPieces[float64], testPieces[float16], testPieces[bfloat16])
}

func testPieces[T element](t *testing.T, o oracle[T]) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(15, 16))
		n := 200<<10/o.typ.Size() + 7
		a, b := newBuffer(o, r, n, 1), newBuffer(o, r, n, 0)
		checkPair(t, m, o, Sum, a, a, b, "dst is a")
	})
}

// checkPair folds and compares all three buffers, where those that are not dst
// have to stay as they are.
func checkPair[T element](t *testing.T, m implementation, o oracle[T], op Op, dst, a, b buffer[T], how string) {
	t.Helper()
	want, wantA, wantB := dst.clone(), a.clone(), b.clone()
	for i := range want.body() {
		want.body()[i] = o.fold(op, wantA.body()[i], wantB.body()[i])
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

// Every special value against every other one: signs, infinities, NaN on either
// side, overflow (C23).
func TestPairSpecialValues(t *testing.T) {
	forEachType(t, testSpecial[uint8], testSpecial[int32], testSpecial[int64], testSpecial[float32], testSpecial[float64], testSpecial[float16], testSpecial[bfloat16])
}

func testSpecial[T element](t *testing.T, o oracle[T]) {
	r := rand.New(rand.NewPCG(3, 4))
	n := len(o.special) * len(o.special)
	a, b := newBuffer(o, r, n, 0), newBuffer(o, r, n, 0)
	for i, x := range o.special {
		for j, y := range o.special {
			a.body()[i*len(o.special)+j], b.body()[i*len(o.special)+j] = x, y
		}
	}
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for _, op := range allOps {
			checkPair(t, m, o, op, newBuffer(o, r, n, 0), a, b, "special values")
		}
	})
}

// The bits that are promised, written out: whoever changes the oracle and the
// loops alike still has these against them.
func TestPairPromises(t *testing.T) {
	t.Run("uint8", func(t *testing.T) {
		promises(t, Uint8, []promise[uint8]{
			{200, Sum, 100, 44},
			{16, Product, 17, 16},
			{200, Min, 100, 100}, // unsigned: as a signed byte 200 is negative
			{200, Max, 100, 200},
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
			{1<<53 + 1, Sum, 0, 1<<53 + 1}, // not by way of float64
			{math.MinInt64, Product, -1, math.MinInt64},
			{1<<32 + 1, Product, 1<<32 + 1, 1<<33 + 1},
			{-5, Min, 3, -5}, {3, Min, -5, -5}, {-5, Min, -3, -5}, {5, Min, 3, 3},
			{-5, Max, 3, 3}, {3, Max, -5, 3}, {-5, Max, -3, -3}, {5, Max, 3, 5},
			{math.MinInt64, Min, math.MaxInt64, math.MinInt64},
			{math.MinInt64, Max, math.MaxInt64, math.MaxInt64},
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

// promise is one line of a table: a op b is want.
type promise[T element] struct {
	a    T
	op   Op
	b    T
	want T
}

// floatPromises takes the largest finite number and the first integer above
// which one is lost.
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

// narrowed returns a table of numbers as one of halves.
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
