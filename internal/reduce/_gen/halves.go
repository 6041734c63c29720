package main

import "github.com/mmcloughlin/avo/operand"

func float16(m *machine) half {
	return half{
		widen:  func(from operand.Op, to vector) { m.VCVTPH2PS(from, to) },
		narrow: func(x vector) { m.VCVTPS2PH(operand.Imm(0), x, m.lower(x)) }, // to nearest even
	}
}

// bfloat16 does not use the bfloat16 instructions of AVX-512, which treat subnormals as zeros. It
// rounds in integers: it adds half of the last digit that stays, less one if that digit is even.
// NaN is made quiet instead, since the addition could turn it into infinity.
func bfloat16(m *machine) half {
	one, most, quiet := m.repeated(0x0000_0001_0000_0001), m.repeated(0x0000_7fff_0000_7fff), m.repeated(0x0000_0040_0000_0040)
	return half{
		widen: func(from operand.Op, to vector) {
			m.VPMOVZXWD(from, to)
			m.VPSLLD(operand.Imm(16), to, to)
		},
		narrow: func(x vector) {
			unordered, upper, odd := operand.Imm(3), m.vector(), m.vector()
			m.VPSRLD(operand.Imm(16), x, upper)
			m.and(one, upper, odd)
			m.VPADDD(most, odd, odd)
			if m.avx512 {
				nan := m.K()
				m.VCMPPS(unordered, x, x, nan)
				m.VPADDD(odd, x, x)
				m.VPSRLD(operand.Imm(16), x, x)
				m.VPORD(quiet, upper, nan, x)
				m.VPMOVDW(x, m.lower(x))
				return
			}
			nan := m.vector()
			m.VCMPPS(unordered, x, x, nan)
			m.VPADDD(odd, x, x)
			m.VPSRLD(operand.Imm(16), x, x)
			m.VPOR(quiet, upper, upper)
			m.VPBLENDVB(nan, upper, x, x)
			m.VEXTRACTI128(operand.Imm(1), x, upper.AsX())
			m.VPACKUSDW(upper.AsX(), x.AsX(), x.AsX())
		},
	}
}
