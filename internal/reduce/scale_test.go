package reduce

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestScale(t *testing.T) { forEachType(t, tester.testScale) }

func (o oracle[T]) testScale(t *testing.T) {
	if CanScale(o.typ, 1) != Defined(o.typ, Product) {
		t.Errorf("%v: CanScale of 1 is %v", o.typ, CanScale(o.typ, 1))
	}
	r := rand.New(rand.NewPCG(25, 26))
	for _, factor := range factorsOf(o.typ) {
		for n := range 41 {
			checkScale(t, o, newBuffer(o, r, n, 3*n), newBuffer(o, r, n, n), factor)
		}
		src := newBuffer(o, r, 2*halfTile+len(o.special), 1)
		copy(src.body(), o.special)
		checkScale(t, o, src, src, factor)
	}
}

// factorsOf returns factors that a type of integers has.
func factorsOf(t Type) []float64 {
	switch t {
	case Uint8, Uint16, Uint32:
		return []float64{0, 1, 3, math.Ldexp(1, 8*t.Size()) - 1}
	case Uint64:
		return []float64{0, 1, 3, 1 << 63, 1<<64 - 1<<11}
	case Bool:
		return nil
	case Int8, Int16, Int32, Int64:
		return []float64{0, 1, -1, 3, -7, -math.Ldexp(1, 8*t.Size()-1)}
	}
	return []float64{0, math.Copysign(0, -1), 1, -1, 3, 0.1, -1.0 / 3, 1 << 20, 0x1p-20, math.MaxFloat64, math.Inf(1), math.NaN()}
}

func checkScale[T element](t *testing.T, o oracle[T], dst, src buffer[T], factor float64) {
	t.Helper()
	want, wantSrc := dst.clone(), src.clone()
	for i, x := range src.body() {
		want.body()[i] = o.scale(x, factor)
	}
	Scale(o.typ, dst.at(), src.at(), len(src.body()), factor)
	dst.require(t, want, "%v times %v:", o.typ, factor)
	if src.at() != dst.at() {
		src.require(t, wantSrc, "%v times %v, source:", o.typ, factor)
	}
}
