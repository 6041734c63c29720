package calls

import (
	"math"
	"testing"

	"github.com/goccl/goccl/ccl"
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
	wantInt(ccl.Product, -24, 2, -3, 4)
	wantInt(ccl.Min, -7, 3, -7, 0)
	wantInt(ccl.Max, 3, 3, -7, 0)

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
