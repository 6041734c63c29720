package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A context has a method for each instruction. The operands are in the order of Go's assembler:
// the result is the last one.
type context = build.Context

// A machine is an instruction set, and the file that is written for it.
type machine struct {
	*context
	name     string
	width    int // of a vector, in bytes
	avx512   bool
	elements []element // the types that have a function
}

// A vector is a register of the machine's width.
type vector = reg.VecVirtual

func (m *machine) vector() vector {
	if m.avx512 {
		return m.ZMM()
	}
	return m.YMM()
}

func (m *machine) vectors(n int) []vector {
	v := make([]vector, n)
	for i := range v {
		v[i] = m.vector()
	}
	return v
}

// inRegister returns y in a register, for operations that use it twice.
func (m *machine) inRegister(y operand.Op) operand.Op {
	if !operand.IsMem(y) {
		return y
	}
	v := m.vector()
	m.VMOVUPS(y, v)
	return v
}

// lower returns the lower half of v.
func (m *machine) lower(v vector) reg.Register {
	if m.avx512 {
		return v.AsY()
	}
	return v.AsX()
}

// repeated returns a vector filled with copies of a word of 64 bits.
func (m *machine) repeated(word uint64) vector {
	r, x, v := m.GP64(), m.XMM(), m.vector()
	m.MOVQ(operand.U64(word), r)
	m.VMOVQ(r, x)
	m.VPBROADCASTQ(x, v)
	return v
}

// and writes to = y & x, the only operation on bits that both instruction sets use.
func (m *machine) and(y, x operand.Op, to vector) {
	if m.avx512 {
		m.VPANDQ(y, x, to)
	} else {
		m.VPAND(y, x, to)
	}
}

// argument returns the address of an argument of the function.
func (m *machine) argument(name string) operand.Mem {
	a, err := m.Param(name).Resolve()
	if err != nil {
		panic(err) // the name is not in the signature
	}
	return a.Addr
}

// load returns an argument of the function in a register.
func (m *machine) load(name string) reg.Register { return m.Load(m.Param(name), m.GP64()) }
