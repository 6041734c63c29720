//go:build amd64 && !noasm && !race

package reduce

import (
	"math"
	"math/bits"
)

// A divisor is how the assembly divides. The zero value divides by one.
//
// Integers are multiplied by the divisor's inverse, held in places enough and
// rounded up (Granlund and Montgomery, Division by Invariant Integers using
// Multiplication, 1994): for magnitudes of b bits and the smallest l with
// by <= 2^l it is 2^(b+l)/by and at most one more, so that the product shifted
// back by b+l exceeds the quotient by less than 1/by, too little to reach the
// next integer. The least negative number, whose magnitude is 2^b, may exceed it
// by just 1/by, if by is a power of two; but then its quotient is an integer, and
// the next one is farther away.
type divisor struct {
	mode   uint64 // 0: do not divide; 1: multiply; 2: divide, floats only
	factor uint64 // multiply or divide by it; one of less than 64 bits is repeated
	shift  uint64 // by how many bits to shift the product of integers
}

func divisorOf(t Type, by int) divisor {
	if by == 1 {
		return divisor{}
	}
	l := uint64(bits.Len(uint(by - 1)))
	switch t {
	case Uint8:
		return divisor{mode: 1, factor: uint64(inverseOfByte(by)) * 0x0001_0001_0001_0001}
	case Int32:
		return divisor{mode: 1, factor: (1<<(31+l))/uint64(by) + 1, shift: 31 + l}
	case Int64: // of the upper half of the product, which is a shift by 64
		inverse, _ := bits.Div64(1<<(l-1), 0, uint64(by))
		return divisor{mode: 1, factor: inverse + 1, shift: l - 1}
	}
	mode, factor := uint64(2), float64(by)
	if by&(by-1) == 0 {
		mode, factor = 1, 1/factor // exact: see divideFloats
	}
	if t == Float32 || t.half() {
		return divisor{mode: mode, factor: uint64(math.Float32bits(float32(factor))) * 0x0000_0001_0000_0001}
	}
	return divisor{mode: mode, factor: math.Float64bits(factor)}
}

// inverseOfByte returns the inverse of a divisor of bytes, held in sixteen binary
// places and rounded up. Up to a divisor of 256 that adds less than 1/by to a
// quotient, too little to reach the next integer; above, all quotients stay below
// one. It has sixteen bits, since the divisor is not one.
func inverseOfByte(by int) uint16 { return uint16(1<<16/by + 1) }
