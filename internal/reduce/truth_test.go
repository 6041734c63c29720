package reduce

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTruth(t *testing.T) { forEachType(t, tester.testTruth) }

func (o oracle[T]) testTruth(t *testing.T) {
	if !slices.Contains(opsOf(o.typ), BAnd) {
		return
	}
	r := rand.New(rand.NewPCG(27, 28))
	for n := range 41 {
		dst, src := newBuffer(o, r, n, 3*n), newBuffer(o, r, n, n)
		want, wantSrc := dst.clone(), src.clone()
		for i, x := range src.body() {
			want.body()[i] = o.of(0)
			if x != o.of(0) {
				want.body()[i] = o.of(1)
			}
		}

		Truth(o.typ, dst.at(), src.at(), n)
		dst.require(t, want, "%v:", o.typ)
		src.require(t, wantSrc, "%v, source:", o.typ)
		Truth(o.typ, src.at(), src.at(), n) // in place
		copy(wantSrc.body(), want.body())
		src.require(t, wantSrc, "%v, in place:", o.typ)
	}
}
