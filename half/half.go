package half

import (
	"strconv"

	"github.com/goccl/goccl/internal/reduce"
)

// Float16 is an IEEE 754 binary16: a sign, five bits of exponent, ten of fraction. It
// is comparable; as with bits, a negative zero is not equal to a positive one.
type Float16 struct{ bits uint16 }

// BFloat16 is the upper half of a float32: a sign, eight bits of exponent, seven of
// fraction. It is comparable, bit by bit.
type BFloat16 struct{ bits uint16 }

// NewFloat16 rounds x to nearest even. What is too large becomes infinity; NaN stays
// one.
func NewFloat16(x float32) Float16 { return Float16{reduce.Float16Bits(x)} }

// NewBFloat16 rounds x to nearest even. NaN stays one.
func NewBFloat16(x float32) BFloat16 { return BFloat16{reduce.BFloat16Bits(x)} }

// Float16FromBits returns the number that has the bits.
func Float16FromBits(bits uint16) Float16 { return Float16{bits} }

// BFloat16FromBits returns the number that has the bits.
func BFloat16FromBits(bits uint16) BFloat16 { return BFloat16{bits} }

// Float32 returns the number; that is exact.
func (f Float16) Float32() float32 { return reduce.Float16Value(f.bits) }

// Float32 returns the number; that is exact.
func (f BFloat16) Float32() float32 { return reduce.BFloat16Value(f.bits) }

// Bits returns the bits of the number.
func (f Float16) Bits() uint16 { return f.bits }

// Bits returns the bits of the number.
func (f BFloat16) Bits() uint16 { return f.bits }

// String returns the number as %v writes a float32.
func (f Float16) String() string { return strconv.FormatFloat(float64(f.Float32()), 'g', -1, 32) }

// String returns the number as %v writes a float32.
func (f BFloat16) String() string { return strconv.FormatFloat(float64(f.Float32()), 'g', -1, 32) }
