package reduce

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDivide(t *testing.T) {
	forEachType(t, tester.testDivide)
}

func (o oracle[T]) testDivide(t *testing.T) {
	if !Defined(o.typ, Avg) {
		return
	}
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(5, 6))
		divisors := []int{1 << 10, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 24, 1 << 30, 1<<30 + 1, math.MaxInt32}
		for by := 1; by <= 300; by++ {
			divisors = append(divisors, by)
		}
		for i, by := range divisors {
			p := newBuffer(o, r, 300+i%9, i)
			copy(p.body(), o.special)
			checkDivide(t, m, o, p, by)
		}
		for n := range o.lengths() {
			checkDivide(t, m, o, newBuffer(o, r, n, n), 3)
		}
	})
}

func checkDivide[T element](t *testing.T, m implementation, o oracle[T], p buffer[T], by int) {
	t.Helper()
	want := p.clone()
	for i, v := range want.body() {
		want.body()[i] = o.divide(v, by)
	}
	m.divide(o.typ, p.at(), len(want.body()), by)
	p.require(t, want, "%v divided by %d:", o.typ, by)
}

// Every byte is divided by every divisor in the ranges that matter. From 256 on all quotients are
// zero, and a divisor truncated to the element type would be zero.
func TestDivideEveryByte(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for by := 1; by <= 520; by++ {
			p, signed := full(256, uint8(0)), full(256, int8(0))
			for i := range p.body() {
				p.body()[i], signed.body()[i] = uint8(i), int8(i)
			}
			checkDivide(t, m, uint8s, p, by)
			checkDivide(t, m, int8s, signed, by)
		}
	})
}

// Every number of 16 bits is divided by divisors in the ranges that matter: the ones with the longest
// inverses, and the ones from 1<<16 on, where all quotients are zero.
func TestDivideEveryShort(t *testing.T) {
	divisors := []int{1, 2, 3, 5, 6, 7, 10, 100, 255, 256, 257, 641, 10007, math.MaxInt32}
	for shift := 14; shift <= 17; shift++ {
		divisors = append(divisors, 1<<shift-1, 1<<shift, 1<<shift+1)
	}
	forEachImplementation(t, func(t *testing.T, m implementation) {
		signed, unsigned := full(1<<16, int16(0)), full(1<<16, uint16(0))
		for _, by := range divisors {
			for i := range 1 << 16 {
				signed.body()[i], unsigned.body()[i] = int16(i), uint16(i)
			}
			checkDivide(t, m, int16s, signed, by)
			checkDivide(t, m, uint16s, unsigned, by)
		}
	})
}

// Integers are multiplied by an inverse. If it is not exact enough, quotients next to an integer are
// wrong first: at the multiples of the divisor and beside them, mainly the largest ones.
func TestDivideMultiples(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(17, 18))
		for i := range 2000 {
			by := 1 + r.IntN(math.MaxInt32)>>r.IntN(31)
			if i%4 == 0 {
				by = min(1<<r.IntN(31)+r.IntN(3), math.MaxInt32)
			}
			p32, p64 := full(64, int32(0)), full(64, int64(0))
			for k := range p32.body() {
				// Most of these quotients are next to the largest one, the others spread.
				most32, most64 := math.MaxInt32/int32(by), math.MaxInt64/int64(by)
				x32 := (most32-r.Int32N(most32)>>r.IntN(31))*int32(by) + r.Int32N(3) - 1
				x64 := (most64-r.Int64N(most64)>>r.IntN(63))*int64(by) + r.Int64N(3) - 1
				if k%2 == 0 {
					x32, x64 = -x32, -x64
				}
				p32.body()[k], p64.body()[k] = x32, x64
			}
			checkDivide(t, m, int32s, p32, by)
			checkDivide(t, m, int64s, p64, by)
		}
	})
}

// Division by a power of two is a multiplication. It must round subnormals, and ties among them, as a
// division does.
func TestDivideSubnormals(t *testing.T) {
	const n = 1 << 12
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for _, by := range []int{1, 2, 3, 4, 8, 64, 1 << 20, 1 << 30} {
			p32, p64 := full(n, float32(0)), full(n, float64(0))
			for i := range n {
				p32.body()[i] = math.Float32frombits(uint32(i))
				p64.body()[i] = -math.Float64frombits(uint64(i))
			}
			checkDivide(t, m, float32s, p32, by)
			checkDivide(t, m, float64s, p64, by)
		}
	})
}
