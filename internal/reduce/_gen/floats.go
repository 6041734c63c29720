package main

import "github.com/mmcloughlin/avo/operand"

// minimumFloat relies on what the instruction gives where its operands are not
// ordered, or both zeros: the second one. Two instructions with exchanged
// operands then give one operand each, and their union is -0 unless both are +0,
// and NaN if one of them is; everywhere else they agree.
func minimumFloat(least instruction) func(*machine) step {
	return func(m *machine) step {
		return func(x vector, y operand.Op) {
			y = m.inRegister(y)
			other := m.vector()
			least(m.context, x, y, other)
			least(m.context, y, x, x)
			m.VORPS(other, x, x)
		}
	}
}

// maximumFloat does as minimumFloat. From the union, which is -0 where the zeros
// differ, it subtracts the difference in bits: -0 - -0 = +0. Where the operands
// agree that is +0, which changes nothing, and NaN stays NaN.
func maximumFloat(greatest, minus instruction) func(*machine) step {
	return func(m *machine) step {
		return func(x vector, y operand.Op) {
			y = m.inRegister(y)
			other, difference := m.vector(), m.vector()
			greatest(m.context, x, y, other)
			greatest(m.context, y, x, x)
			m.VXORPS(other, x, difference)
			m.VORPS(other, x, x)
			minus(m.context, difference, x, x)
		}
	}
}

// divideFloat divides or, in the other mode, multiplies by an exact inverse.
func divideFloat(times, by instruction) func(*machine) finish {
	return func(m *machine) finish {
		factor := m.vector()
		m.VPBROADCASTQ(m.argument("factor"), factor)
		return func(label string, x []vector) {
			m.CMPQ(m.argument("mode"), operand.Imm(2)) // a true division
			m.JEQ(operand.LabelRef(label + "Divide"))
			for _, x := range x {
				times(m.context, factor, x, x)
			}
			m.JMP(operand.LabelRef(label + "Finished"))
			m.Label(label + "Divide")
			for _, x := range x {
				by(m.context, factor, x, x)
			}
		}
	}
}
