package reduce

import "math"

// The floats of 16 bits, as they are stored. Arithmetic is done on float32s, which
// hold every value of either type: what counts is how they are widened to them and
// narrowed from them. Nothing here branches on values that come in random order.

// A float16 is an IEEE 754 binary16: a sign, five bits of exponent, ten of fraction.
type float16 uint16

// A bfloat16 is the upper half of a float32.
type bfloat16 uint16

// widen is exact. It puts the bits where a float32 has them and lets a
// multiplication correct the exponent, which also normalises subnormals. Infinity
// and NaN have the largest exponent instead.
func (h float16) widen() float32 {
	magnitude := uint32(h&0x7fff) << 13
	bits := math.Float32bits(math.Float32frombits(magnitude) * 0x1p112)
	if magnitude >= 0x0f80_0000 {
		bits = magnitude | 0x7f80_0000
	}
	return math.Float32frombits(bits | uint32(h&0x8000)<<16)
}

// toFloat16 rounds to nearest even. It adds to the magnitude a power of two whose
// last digit is the last one that a float16 of that magnitude has: the sum ends with
// those digits, rounded. They include the leading one, which is why they are added
// to an exponent less by one; a carry goes into the exponent, and from the last one
// into infinity.
func toFloat16(x float32) float16 {
	const least, most, infinity = 0x3880_0000, 0x4780_0000, 0x7f80_0000 // 2^-14, 2^16
	const digits = 13 << 23                                             // fewer than a float32 has
	bits := math.Float32bits(x)
	magnitude := min(bits&0x7fff_ffff, most)
	power := max(magnitude&infinity, least) + digits
	h := math.Float32bits(math.Float32frombits(magnitude)+math.Float32frombits(power)) - power
	h += (power - least - digits) >> 13
	if x != x {
		h = 0x7e00 // quiet
	}
	return float16(h | bits>>16&0x8000)
}

// widen is exact.
func (h bfloat16) widen() float32 { return math.Float32frombits(uint32(h) << 16) }

// toBFloat16 rounds to nearest even: it adds a half of the last digit that stays,
// less one if that digit is even. A carry goes into the exponent, and from the last
// one into infinity, as rounding up should; NaN must not go that way.
func toBFloat16(x float32) bfloat16 {
	bits := math.Float32bits(x)
	h := (bits + 0x7fff + bits>>16&1) >> 16
	if x != x {
		h = bits>>16 | 0x40 // quiet
	}
	return bfloat16(h)
}

// The loops over both types are written out: a generic one would call the methods
// above, element by element, by way of a table.

func widenFloat16s(to []float32, from []float16) {
	to = to[:len(from)]
	for i, h := range from {
		to[i] = h.widen()
	}
}

func widenBFloat16s(to []float32, from []bfloat16) {
	to = to[:len(from)]
	for i, h := range from {
		to[i] = h.widen()
	}
}

func narrowFloat16s(to []float16, from []float32) {
	to = to[:len(from)]
	for i, x := range from {
		to[i] = toFloat16(x)
	}
}

func narrowBFloat16s(to []bfloat16, from []float32) {
	to = to[:len(from)]
	for i, x := range from {
		to[i] = toBFloat16(x)
	}
}

// reduceFloats is one step of a reduction held in float32: acc = acc op x.
func reduceFloats(op Op, acc, x []float32) {
	switch op {
	case Sum, Avg:
		sum(acc, acc, x)
	case Product:
		product(acc, acc, x)
	case Min:
		minimum(acc, acc, x)
	case Max:
		maximum(acc, acc, x)
	}
}

// Float16Bits rounds x to nearest even and returns the bits of the float16.
func Float16Bits(x float32) uint16 { return uint16(toFloat16(x)) }

// Float16Value returns the number whose bits a float16 has.
func Float16Value(bits uint16) float32 { return float16(bits).widen() }

// BFloat16Bits rounds x to nearest even and returns the bits of the bfloat16.
func BFloat16Bits(x float32) uint16 { return uint16(toBFloat16(x)) }

// BFloat16Value returns the number whose bits a bfloat16 has.
func BFloat16Value(bits uint16) float32 { return bfloat16(bits).widen() }
