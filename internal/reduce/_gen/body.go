package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A body is the body of a loop. One pass reduces as many elements as the vectors x hold.
type body struct {
	*function
	name    string
	x       []vector
	step    step
	finish  finish // nil: no last step
	half    *half  // nil: elements are the same in memory and in registers
	streams bool   // may store past the caches
}

func (s *body) write() {
	p, i := s.GP64(), s.GP64()

	s.load(s.src0)
	s.CMPQ(s.nsrcs, operand.Imm(1))
	s.JEQ(operand.LabelRef(s.name + "Reduced"))
	s.reduce(s.src1)
	s.others(p, i, "Source", 2, s.srcs, s.nsrcs, s.reduce)
	s.Label(s.name + "Reduced")

	if s.finish != nil {
		s.CMPQ(s.argument("mode"), operand.Imm(0))
		s.JEQ(operand.LabelRef(s.name + "Finished"))
		s.finish(s.name, s.x)
		s.Label(s.name + "Finished")
	}

	if s.half != nil {
		for _, x := range s.x {
			s.half.narrow(x)
		}
	}
	if s.streams {
		s.CMPB(s.argument("stream"), operand.Imm(0))
		s.JNE(operand.LabelRef(s.name + "Stream"))
	}

	s.store(s.dst0)
	s.others(p, i, "Destination", 1, s.dsts, s.ndsts, s.store)
	if s.streams {
		s.stream(p, i)
	}
}

// others writes a loop that calls do with each of n pointers of a list, from the one with the
// index first on.
func (s *body) others(p, i reg.GPVirtual, name string, first uint32, list, n reg.Register, do func(reg.Register)) {
	s.MOVQ(operand.U32(first), i)
	s.JMP(operand.LabelRef(s.name + name + "s"))
	s.Label(s.name + name)

	s.MOVQ(operand.Mem{Base: list, Index: i, Scale: 8}, p)
	do(p)
	s.INCQ(i)

	s.Label(s.name + name + "s")
	s.CMPQ(i, n)
	s.JLT(operand.LabelRef(s.name + name))
}

// stream writes the stores past the caches, beside the ordinary ones.
func (s *body) stream(p, i reg.GPVirtual) {
	s.JMP(operand.LabelRef(s.name + "Done"))
	s.Label(s.name + "Stream")
	s.XORQ(i, i)
	s.Label(s.name + "Streams")
	s.MOVQ(operand.Mem{Base: s.dsts, Index: i, Scale: 8}, p)

	for j, x := range s.x {
		s.VMOVNTPS(s.stored(x), s.memory(p, j))
	}
	s.INCQ(i)
	s.CMPQ(i, s.ndsts)
	s.JLT(operand.LabelRef(s.name + "Streams"))
	s.Label(s.name + "Done")
}

// memory returns the address of vector j of the buffer at p.
func (s *body) memory(p reg.Register, j int) operand.Mem {
	return operand.Mem{Base: p, Index: s.at, Scale: 1, Disp: j * s.stride}
}

func (s *body) load(p reg.Register) {
	for j, x := range s.x {
		s.read(s.memory(p, j), x)
	}
}

// read moves one vector from memory to a register.
func (s *body) read(from operand.Mem, to vector) {
	if s.half != nil {
		s.half.widen(from, to)
	} else {
		s.VMOVUPS(from, to)
	}
}

func (s *body) reduce(p reg.Register) {
	for j, x := range s.x {
		if s.half != nil {
			y := s.vector()
			s.read(s.memory(p, j), y)
			s.step(x, y)
		} else {
			s.step(x, s.memory(p, j))
		}
	}
}

func (s *body) store(p reg.Register) {
	for j, x := range s.x {
		s.VMOVUPS(s.stored(x), s.memory(p, j))
	}
}

// stored returns the part of x that goes to memory.
func (s *body) stored(x vector) operand.Op {
	if s.half != nil {
		return s.lower(x)
	}
	return x
}
