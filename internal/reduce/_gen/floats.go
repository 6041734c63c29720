package main

import "github.com/mmcloughlin/avo/operand"

// minimumFloat runs the instruction twice, with exchanged operands, and combines the results by
// OR. If the operands are NaN or both zeros, the instruction returns its second operand, so the
// two results are the two operands: their OR is NaN if one is NaN, and -0 unless both are +0. In
// all other cases the two results are equal.
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

// maximumFloat does the same, then subtracts the bits in which the two results differ. For zeros
// of different signs that is -0 - -0 = +0. If the results are equal it subtracts +0, which changes
// nothing. NaN stays NaN.
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

// divideFloat divides in mode 2, and multiplies by an exact inverse in mode 1.
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
