package half

import (
	"strconv"

	"github.com/goccl/goccl/internal/reduce"
)

// Float16 is an IEEE 754 binary16: a sign, five bits of exponent, ten of fraction. ==
// compares bits: a negative zero is not equal to a positive one.
type Float16 struct{ bits uint16 }

// BFloat16 is the upper half of a float32: a sign, eight bits of exponent, seven of
// fraction. == compares bits.
type BFloat16 struct{ bits uint16 }

// NewFloat16 rounds x to nearest even. Numbers that are too large become infinity; NaN
// stays NaN.
func NewFloat16(x float32) Float16 { return Float16{reduce.Float16Bits(x)} }

// NewBFloat16 rounds x to nearest even. NaN stays NaN.
func NewBFloat16(x float32) BFloat16 { return BFloat16{reduce.BFloat16Bits(x)} }

// Float16FromBits returns the number with these bits.
func Float16FromBits(bits uint16) Float16 { return Float16{bits} }

// BFloat16FromBits returns the number with these bits.
func BFloat16FromBits(bits uint16) BFloat16 { return BFloat16{bits} }

// Float32 returns the number as a float32, which is exact.
func (f Float16) Float32() float32 { return reduce.Float16Value(f.bits) }

// Float32 returns the number as a float32, which is exact.
func (f BFloat16) Float32() float32 { return reduce.BFloat16Value(f.bits) }

// Bits returns the bits.
func (f Float16) Bits() uint16 { return f.bits }

// Bits returns the bits.
func (f BFloat16) Bits() uint16 { return f.bits }

// String formats the number as %v formats a float32.
func (f Float16) String() string { return strconv.FormatFloat(float64(f.Float32()), 'g', -1, 32) }

// String formats the number as %v formats a float32.
func (f BFloat16) String() string { return strconv.FormatFloat(float64(f.Float32()), 'g', -1, 32) }
