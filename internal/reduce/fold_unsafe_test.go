package reduce

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// A Fold gives the bits of the recursion in any implementation, in place or not.
func TestFold(t *testing.T) { forEachType(t, tester.testFold) }

func (o oracle[T]) testFold(t *testing.T) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		r := rand.New(rand.NewPCG(3, 4))
		for sources := 1; sources <= 9; sources++ {
			for _, op := range opsOf(o.typ) {
				for _, n := range []int{1 + r.IntN(40), tileBytes/o.typ.Size() + r.IntN(70)} {
					o.checkFold(t, m, r, op, sources, n, 1+r.IntN(300), r.IntN(2) == 0)
				}
			}
		}
	})
}

func (o oracle[T]) checkFold(t *testing.T, m implementation, r *rand.Rand, op Op, sources, n, by int, isInPlace bool) {
	t.Helper()
	all := make([][]T, sources)
	for k := range all {
		all[k] = make([]T, n)
		for i := range all[k] {
			all[k][i] = o.value(r)
		}
	}
	before := make([][]T, sources)
	for k := range all {
		before[k] = slices.Clone(all[k])
	}
	outputs := [][]T{make([]T, n), make([]T, n)}
	if isInPlace {
		outputs = all
	}

	pointers := func(buffers [][]T) (p []unsafe.Pointer) {
		for _, b := range buffers {
			p = append(p, unsafe.Pointer(&b[0]))
		}
		return p
	}
	m.fold(o.typ, op, pointers(outputs), pointers(all), nil, n, by)

	for i := range n {
		x := make([]T, sources)
		for k := range before {
			x[k] = before[k][i]
		}
		want := o.fold(op, x, by)
		for k := range outputs {
			if !same(outputs[k][i], want) {
				t.Fatalf("%v %v of %d sources: element %d of %d is %v, want %v", o.typ, op, sources, i, n, outputs[k][i], want)
			}
		}
	}
}

// Sums of whole subtrees give the bits of their leaves, however the leaves are dealt out.
func TestFoldLeaves(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for leaves := 1; leaves <= 16; leaves++ {
		all := make([][]float32, leaves)
		for k := range all {
			for range 1500 {
				all[k] = append(all[k], float32(r.NormFloat64()))
			}
		}
		want := make([]float32, 1500)
		FoldSlices(want, all, nil, leaves)

		for range 20 {
			sources, sizes := subtrees(r, all)
			got := make([]float32, 1500)
			FoldSlices(got, sources, sizes, leaves)
			if !slices.Equal(got, want) {
				t.Fatalf("%d leaves as subtrees of %d: other bits", leaves, sizes)
			}
		}
	}
}

// subtrees returns the sums of subtrees, chosen at random, that make up a tree.
func subtrees(r *rand.Rand, leaves [][]float32) (sources [][]float32, sizes []int) {
	if len(leaves) == 1 || r.IntN(3) == 0 {
		sum := make([]float32, len(leaves[0]))
		FoldSlices(sum, leaves, nil, 1)
		return [][]float32{sum}, []int{len(leaves)}
	}
	split := SplitFold(len(leaves), nil)
	left, leftSizes := subtrees(r, leaves[:split])
	right, rightSizes := subtrees(r, leaves[split:])
	return append(left, right...), append(leftSizes, rightSizes...)
}

// fold is the specification of Fold.
func (o oracle[T]) fold(op Op, x []T, by int) T {
	switch x := any(x).(type) {
	case []float16:
		var wide []float32
		for _, h := range x {
			wide = append(wide, h.widen())
		}
		return any(toFloat16(float32s.fold(op, wide, by))).(T)
	case []bfloat16:
		var wide []float32
		for _, h := range x {
			wide = append(wide, h.widen())
		}
		return any(toBFloat16(float32s.fold(op, wide, by))).(T)
	}

	acc := o.foldTree(op, x)
	if op == Avg {
		acc = o.divide(acc, by)
	}
	return acc
}

func (o oracle[T]) foldTree(op Op, x []T) T {
	if len(x) == 1 {
		return x[0]
	}
	left := 1
	for 2*left < len(x) {
		left *= 2
	}
	return o.step(op, o.foldTree(op, x[:left]), o.foldTree(op, x[left:]))
}
