package reduce

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDivide(t *testing.T) {
	forEachType(t, testDivide[uint8], testDivide[int32], testDivide[int64], testDivide[float32], testDivide[float64])
}

func testDivide[T number](t *testing.T, o oracle[T]) {
	r := rand.New(rand.NewPCG(5, 6))
	divisors := []int{1 << 10, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 24, 1 << 30, math.MaxInt32}
	for by := 1; by <= 300; by++ {
		divisors = append(divisors, by)
	}
	for i, by := range divisors {
		p := newBuffer(o, r, 300+i%9, i%8)
		copy(p.body(), o.special)
		checkDivide(t, o, p, by)
	}
	checkDivide(t, o, newBuffer(o, r, 0, 0), 3)
}

func checkDivide[T number](t *testing.T, o oracle[T], p buffer[T], by int) {
	t.Helper()
	want := p.clone()
	for i, v := range want.body() {
		want.body()[i] = o.divide(v, by)
	}
	Divide(o.typ)(p.at(), len(want.body()), by)
	p.require(t, want, "%v divided by %d:", o.typ, by)
}

// Every byte by every divisor around those that matter: from 256 on all is zero,
// and a divisor cut to the type of the elements would be zero there.
func TestDivideEveryByte(t *testing.T) {
	for by := 1; by <= 520; by++ {
		p := full(256, uint8(0))
		for i := range p.body() {
			p.body()[i] = uint8(i)
		}
		checkDivide(t, uint8s, p, by)
	}
}

// Powers of two are divided by another way, which has to round subnormals, and
// ties among them, as a division does.
func TestDivideSubnormals(t *testing.T) {
	const n = 1 << 12
	for _, by := range []int{1, 2, 4, 8, 64, 1 << 20, 1 << 30} {
		p32, p64 := full(n, float32(0)), full(n, float64(0))
		for i := range n {
			p32.body()[i] = math.Float32frombits(uint32(i))
			p64.body()[i] = -math.Float64frombits(uint64(i))
		}
		checkDivide(t, float32s, p32, by)
		checkDivide(t, float64s, p64, by)
	}
}
