package reduce

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
