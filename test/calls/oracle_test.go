package calls

import (
	"math"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// The oracle against sums done by hand.
func TestReduce(t *testing.T) {
	reduce, identical, near := float64s.reduce, float64s.identical, float64s.near
	wantInt := func(op ccl.Op, want int32, xs ...int32) {
		t.Helper()
		if got := int32s.reduce(op, xs); got != want {
			t.Errorf("%v of %v is %v instead of %v", op, xs, got, want)
		}
	}
	wantInt(ccl.Sum, 6, 1, 2, 3)
	wantInt(ccl.Sum, math.MinInt32, math.MaxInt32, 1)
	wantInt(ccl.Avg, -2, -3, -4, -1) // truncates toward zero
	wantInt(ccl.Avg, math.MinInt32/2, math.MaxInt32, 1)
	if got := integers[uint8]().reduce(ccl.Avg, slices.Repeat([]uint8{9}, 257)); got != 0 { // 9 / 257
		t.Errorf("the mean of 257 bytes is %v", got)
	}
	wantInt(ccl.Product, -24, 2, -3, 4)
	wantInt(ccl.Min, -7, 3, -7, 0)
	wantInt(ccl.Max, 3, 3, -7, 0)
	wantInt(ccl.LAnd, 1, 2, 4, -1)
	wantInt(ccl.LAnd, 0, 2, 0, -1)
	wantInt(ccl.LOr, 1, 0, 0, 4)
	wantInt(ccl.LXor, 0, 2, 0, 4)
	wantInt(ccl.LXor, 1, 2) // of one rank

	nan, negative := math.NaN(), math.Copysign(0, -1)
	wantFloat := func(op ccl.Op, want float64, xs ...float64) {
		t.Helper()
		if got := reduce(op, xs); !identical(got, want) {
			t.Errorf("%v of %v is %v instead of %v", op, xs, got, want)
		}
	}
	wantFloat(ccl.Sum, 0, 1, 1e100, -1e100)
	wantFloat(ccl.Sum, negative, negative, negative) // starts from the first
	wantFloat(ccl.Avg, 2.5, 1, 4)
	wantFloat(ccl.Min, nan, 1, nan, 2)
	wantFloat(ccl.Max, nan, nan, 1)
	wantFloat(ccl.Min, negative, 0, negative)
	wantFloat(ccl.Max, 0, negative, 0)
	if identical(0, negative) || identical(1.0, 2) || !identical(nan, nan) {
		t.Error("identical is wrong")
	}
	if !near(ccl.Sum, 1+0x1p-52, 1, []float64{1, 0x1p-53}) || near(ccl.Sum, 1.001, 1, []float64{1, 0}) {
		t.Error("near is wrong")
	}
}

// Inputs are what the checks assume of them.
func TestValues(t *testing.T) {
	const ranks, count = 16, 2000
	seen := make(map[int64]bool)
	kinds := make(map[string]int)
	for r := range ranks {
		for i := range count {
			seen[int64s.value(&Call{}, r, i)] = true
			x := float64s.value(&Call{Numbers: Odd, Op: ccl.Min}, r, i)
			switch {
			case x != x:
				kinds["NaN"]++
			case x == 0 && math.Signbit(x):
				kinds["-0"]++
			case x == 0:
				kinds["0"]++
			case math.IsInf(x, 0):
				kinds["inf"]++
			}
		}
	}
	if len(seen) != ranks*count {
		t.Errorf("%d different integers of %d", len(seen), ranks*count)
	}
	for _, kind := range []string{"NaN", "-0", "0", "inf"} {
		if kinds[kind] < count {
			t.Errorf("%s comes %d times", kind, kinds[kind])
		}
	}
	for i := range count {
		for _, op := range []ccl.Op{ccl.Sum, ccl.Product} {
			up, down := make([]float32, ranks), make([]float32, ranks)
			for r := range ranks {
				up[r] = float32s.value(&Call{Op: op}, r, i)
				down[ranks-1-r] = up[r]
			}
			if float32s.reduce(op, up) != float32s.reduce(op, down) {
				t.Fatalf("%v of exact numbers depends on the order: %v", op, up)
			}
		}
	}
}

// Exact inputs have one result in any order of the ranks, on however many of them, and others one that is near
// enough to that in rank order.
func TestResultsOnManyRanks(t *testing.T) {
	t.Run("float16", testManyRanks[half.Float16])
	t.Run("bfloat16", testManyRanks[half.BFloat16])
	t.Run("float32", testManyRanks[float32])
	t.Run("float64", testManyRanks[float64])
	t.Run("complex64", testManyRanks[complex64])
	t.Run("complex128", testManyRanks[complex128])
	t.Run("uint8", testManyRanks[uint8])
	t.Run("int16", testManyRanks[int16])
	t.Run("int64", testManyRanks[int64])
}

func testManyRanks[T ccl.Element](t *testing.T) {
	kind := KindOf(ccl.DTypeOf[T]())
	for _, ranks := range []int{16, 17, 24, 40, 64, 100, 300} {
		for _, op := range kind.Ops {
			for _, numbers := range []Numbers{Exact, Rough} {
				c := &Call{Coll: ccl.CollAllReduce, Ranks: ranks, DType: kind.DType, Op: op, Count: 200, Numbers: numbers}
				a := NewAttempt(c, 0, false).(*typed[T])
				want, inputs := a.reductions(c, ranks), a.answersTo(c).inputs
				changes := make(map[int]bool)
				for i := range c.Count {
					xs := a.answersTo(c).operands(i, make([]T, ranks))
					got := a.inTree(op, xs)
					if op == ccl.Avg {
						got = a.divided(a.inTree(ccl.Sum, xs), ranks)
					}
					isRight := a.identical(got, want[i]) || numbers == Rough && a.near(op, got, want[i], xs) ||
						op == ccl.Avg && a.wideMeans // it has another definition
					if !isRight {
						t.Fatalf("%v on %d ranks, element %d: %v in a tree, %v in rank order", op, ranks, i, got, want[i])
					}
					for r := range ranks {
						if !a.identical(inputs[r][i], a.of(0)) && !a.identical(inputs[r][i], a.of(1)) {
							changes[r] = true
						}
					}
				}
				if len(changes) < ranks/2 {
					t.Errorf("%v on %d ranks: only %d have inputs that change a result", op, ranks, len(changes))
				}
			}
		}
	}
}

// inTree reduces halves, and then their results.
func (o *oracle[T]) inTree(op ccl.Op, xs []T) T {
	if len(xs) == 1 {
		return o.operand(op, xs[0])
	}
	lo, hi := o.inTree(op, xs[:len(xs)/2]), o.inTree(op, xs[len(xs)/2:])
	if op == Premul {
		op = ccl.Sum
	}
	return o.reduce(op, []T{lo, hi})
}
