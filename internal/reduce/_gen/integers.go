package main

import "github.com/mmcloughlin/avo/operand"

// Operations for which AVX2 has no instruction: products of bytes; products, minima and maxima of
// 64-bit integers; and the division of an average, for Uint8, Int32 and Int64.

// evenBytes has the bits of every other byte, starting with the first.
const evenBytes = 0x00ff00ff00ff00ff

// multiplyBytes multiplies the even bytes and the odd ones separately, as words of 16 bits. The
// odd bytes of y stay in the upper halves of their words, and so do their products.
func multiplyBytes(m *machine) step {
	even := m.repeated(evenBytes)
	return func(x vector, y operand.Op) {
		y = m.inRegister(y)
		low, odd := m.vector(), m.vector()
		m.VPMULLW(y, x, low)
		m.and(even, low, low)
		m.VPSRLW(operand.Imm(8), x, x)
		m.VPANDN(y, even, odd)
		m.VPMULLW(odd, x, x)
		m.VPOR(low, x, x)
	}
}

// multiplyInt64 adds 32-bit products: low by low, and in the upper half the two products of a low
// half and a high half.
func multiplyInt64(m *machine) step {
	return func(x vector, y operand.Op) {
		y = m.inRegister(y)
		crossed, other := m.vector(), m.vector()
		m.VPSHUFD(operand.Imm(0b10_11_00_01), y, crossed) // halves exchanged
		m.VPMULLD(x, crossed, crossed)
		m.VPSRLQ(operand.Imm(32), crossed, other)
		m.VPADDD(crossed, other, other)
		m.VPSLLQ(operand.Imm(32), other, other)
		m.VPMULUDQ(y, x, x)
		m.VPADDQ(other, x, x)
	}
}

func minimumInt64(m *machine) step {
	return func(x vector, y operand.Op) {
		y = m.inRegister(y)
		greater := m.vector()
		m.VPCMPGTQ(y, x, greater)
		m.VPBLENDVB(greater, y, x, x)
	}
}

func maximumInt64(m *machine) step {
	return func(x vector, y operand.Op) {
		y = m.inRegister(y)
		greater := m.vector()
		m.VPCMPGTQ(y, x, greater)
		m.VPBLENDVB(greater, x, y, x)
	}
}

// divideUint8 multiplies the even bytes and the odd ones by the inverse in sixteen binary places,
// and keeps the integer part.
func divideUint8(m *machine) finish {
	even, inverse := m.repeated(evenBytes), m.vector()

	m.VPBROADCASTQ(m.argument("factor"), inverse)
	return func(_ string, x []vector) {
		for _, x := range x {
			odd := m.vector()
			m.VPSRLW(operand.Imm(8), x, odd)
			m.and(even, x, x)
			m.VPMULHUW(inverse, x, x)
			m.VPMULHUW(inverse, odd, odd)
			m.VPSLLW(operand.Imm(8), odd, odd)
			m.VPOR(odd, x, x)
		}
	}
}

// divideInt32 multiplies the magnitude by the inverse and restores the sign. It multiplies the
// even numbers and the odd ones separately, in 64 bits.
func divideInt32(m *machine) finish {
	inverse, shift := m.vector(), m.XMM()
	m.VPBROADCASTQ(m.argument("factor"), inverse)
	m.VMOVQ(m.argument("shift"), shift)
	return func(_ string, x []vector) {
		for _, x := range x {
			sign, odd := m.vector(), m.vector()
			m.VPSRAD(operand.Imm(31), x, sign)
			m.VPABSD(x, x)
			m.VPSRLQ(operand.Imm(32), x, odd)

			m.VPMULUDQ(inverse, x, x)
			m.VPMULUDQ(inverse, odd, odd)
			m.VPSRLQ(shift, x, x)
			m.VPSRLQ(shift, odd, odd)
			m.VPSLLQ(operand.Imm(32), odd, odd)
			m.VPOR(odd, x, x)
			m.VPXOR(sign, x, x)
			m.VPSUBD(sign, x, x)
		}
	}
}

// divideInt64 multiplies the magnitude by the inverse and restores the sign. It needs the upper
// half of the 128-bit product, which is the sum of four smaller products.
func divideInt64(m *machine) finish {
	inverse, upper, shift := m.vector(), m.vector(), m.XMM()
	m.VPBROADCASTQ(m.argument("factor"), inverse)
	m.VPSRLQ(operand.Imm(32), inverse, upper)
	m.VMOVQ(m.argument("shift"), shift)
	low := m.repeated(1<<32 - 1)
	return func(_ string, x []vector) {
		for _, x := range x {
			sign, a, b, c := m.vector(), m.vector(), m.vector(), m.vector()
			m.VPSRAD(operand.Imm(31), x, sign)
			m.VPSHUFD(operand.Imm(0b11_11_01_01), sign, sign) // upper halves only
			m.VPXOR(sign, x, x)
			m.VPSUBQ(sign, x, x)

			m.VPMULUDQ(inverse, x, a) // low by low
			m.VPMULUDQ(upper, x, b)   // low by high
			m.VPSRLQ(operand.Imm(32), x, x)
			m.VPMULUDQ(inverse, x, c) // high by low
			m.VPMULUDQ(upper, x, x)   // high by high
			m.VPSRLQ(operand.Imm(32), a, a)
			m.VPADDQ(a, c, c)
			m.and(low, c, a)
			m.VPADDQ(a, b, b)
			m.VPSRLQ(operand.Imm(32), b, b)
			m.VPSRLQ(operand.Imm(32), c, c)
			m.VPADDQ(b, x, x)
			m.VPADDQ(c, x, x)

			m.VPSRLQ(shift, x, x)
			m.VPXOR(sign, x, x)
			m.VPSUBQ(sign, x, x)
		}
	}
}
