package reduce

// The epilogue of Avg: p[i] /= by, in place.

func divideFloats[T float32 | float64](p []T, by int) {
	// The inverse of a power of two is exact, so that the product is the same
	// number rounded in the same way, at a fraction of a division's cost.
	if by&(by-1) == 0 {
		inverse := 1 / T(by)
		for i := range p {
			p[i] *= inverse
		}
		return
	}
	divisor := T(by)
	for i := range p {
		p[i] /= divisor
	}
}

func divideInts[T int32 | int64](p []T, by int) {
	divisor := T(by)
	for i := range p {
		p[i] /= divisor
	}
}

// divideBytes divides in a wider type: by may be above 255.
func divideBytes(p []uint8, by int) {
	divisor := uint32(by)
	for i, v := range p {
		p[i] = uint8(uint32(v) / divisor)
	}
}
