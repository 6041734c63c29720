package reduce

import "math"

// CanScale reports whether Scale can multiply elements of type t by factor: of integers it must be
// an integer of the type, and bools have no products.
func CanScale(t Type, factor float64) bool {
	lo, hi := 0.0, math.Ldexp(1, 8*t.Size())
	switch {
	case types[t].kind == booleans:
		return false
	case types[t].kind != integers:
		return true
	case t == Int8 || t == Int16 || t == Int32 || t == Int64:
		lo, hi = -hi/2, hi/2
	}
	return factor == math.Trunc(factor) && factor >= lo && factor < hi
}

// The loops of Scale: dst[i] = factor * src[i]. dst is src or disjoint from it.

func scaleFloats[T float](dst, src []T, factor T) {
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = factor * x
	}
}

func scaleInts[T integer](dst, src []T, factor float64) {
	by := T(uint64(factor))
	if factor < 0 {
		by = T(int64(factor))
	}
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = by * x
	}
}
