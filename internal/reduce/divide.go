package reduce

// The epilogue of Avg: p[i] /= by, in place.

func divideFloats[T float](p []T, by int) {
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

func divideInts[T int32 | int64 | uint32 | uint64](p []T, by int) {
	divisor := T(by)
	for i := range p {
		p[i] /= divisor
	}
}

// divideShorts multiplies by the divisor's inverse, held in 32 binary places and
// rounded up (Granlund and Montgomery, Division by Invariant Integers using
// Multiplication, 1994). Up to a divisor of 1<<16, above which all quotients are zero
// as they are there, that adds less than 1/by to a quotient's magnitude: too little to
// reach the next integer. The shift rounds down, below zero to one less than it should.
func divideShorts[T int8 | int16 | uint8 | uint16](p []T, by int) {
	inverse := 1<<32/int64(min(by, 1<<16)) + 1
	for i, v := range p {
		quotient := int64(v) * inverse >> 32
		p[i] = T(quotient - quotient>>63)
	}
}
