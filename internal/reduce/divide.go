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

// divideBytes multiplies by the divisor's inverse.
func divideBytes(p []uint8, by int) {
	inverse := inverseOfByte(by)
	for i, v := range p {
		p[i] = uint8(uint32(v) * inverse >> 16)
	}
}

// inverseOfByte returns the inverse of a divisor of bytes, held in sixteen binary
// places and rounded up (Granlund and Montgomery, Division by Invariant Integers
// using Multiplication, 1994). Up to a divisor of 256 that adds less than 1/by to
// a quotient, too little to reach the next integer; above, all quotients stay
// below one. It has sixteen bits but for a divisor of one, which has one more.
func inverseOfByte(by int) uint32 { return uint32(1<<16/by + 1) }
