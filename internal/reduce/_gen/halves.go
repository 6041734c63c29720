package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
)

// conversions writes the functions that convert float16s to float32s and back, in vectors of eight.
func (m *machine) conversions() {
	for _, name := range []string{"widen", "narrow"} {
		m.Function(name + "Float16s" + m.name)
		m.Doc(fmt.Sprintf("%sFloat16s%s converts n elements, a multiple of eight; see implementation.%s.", name, m.name, name))
		m.Attributes(attr.NOSPLIT)
		m.Pragma("noescape")
		m.SignatureExpr("func(dst, src *byte, n int)")
		dst, src, n, at, x := m.load("dst"), m.load("src"), m.load("n"), m.GP64(), m.vector()

		m.XORQ(at, at)
		m.JMP(operand.LabelRef("next"))
		m.Label("eight")
		if name == "widen" {
			m.VCVTPH2PS(operand.Mem{Base: src, Index: at, Scale: 2}, x)
			m.VMOVUPS(x, operand.Mem{Base: dst, Index: at, Scale: 4})
		} else {
			m.VMOVUPS(operand.Mem{Base: src, Index: at, Scale: 4}, x)
			m.VCVTPS2PH(operand.Imm(0), x, operand.Mem{Base: dst, Index: at, Scale: 2}) // to nearest even
		}
		m.ADDQ(operand.Imm(8), at)
		m.Label("next")
		m.CMPQ(at, n)
		m.JLT(operand.LabelRef("eight"))
		m.VZEROUPPER()
		m.RET()
	}
}

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
	lastDigit, most, quiet := m.repeated(0x0000_0001_0000_0001), m.repeated(0x0000_7fff_0000_7fff), m.repeated(0x0000_0040_0000_0040)
	return half{
		widen: func(from operand.Op, to vector) {
			m.VPMOVZXWD(from, to)
			m.VPSLLD(operand.Imm(16), to, to)
		},
		narrow: func(x vector) {
			unordered, upper, odd := operand.Imm(3), m.vector(), m.vector()
			m.VPSRLD(operand.Imm(16), x, upper)
			m.and(lastDigit, upper, odd)
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
