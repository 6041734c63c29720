package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockBytes is the number of bytes of every source that are reduced at once, in registers: four
// of AVX-512, or eight of the sixteen of AVX2, because some operations need the others. Longer
// blocks are no faster for two sources and slower for many. Prefetching does not help.
const blockBytes = 256

// signature is explained in package reduce, at implementation.call.
const signature = "func(op uint8, dsts, srcs **byte, ndsts, nsrcs, at, bytes int, stream bool, mode, factor, shift uint64)"

// A function reduces any number of sources of one type into any number of destinations.
type function struct {
	*machine
	element                  element
	stride                   int           // bytes in memory that fill a vector
	dsts, srcs, ndsts, nsrcs reg.Register  // pointers and their numbers
	at, todo                 reg.Register  // offset of the next byte, number of bytes to do
	dst0, src0, src1         reg.GPVirtual // the first pointers; src1 only if there is one
}

func (m *machine) function(e element) {
	m.Function("reduce" + e.name + m.name)
	stride := m.width
	if e.half != nil {
		stride /= 2 // elements in registers are twice as long
	}
	m.Doc(fmt.Sprintf("reduce%s%s reduces elements of type %s; see implementation.call.", e.name, m.name, strings.ToLower(e.name)))
	m.Attributes(attr.NOSPLIT)
	m.Pragma("noescape")
	m.SignatureExpr(signature)
	f := function{
		machine: m, element: e, stride: stride,
		dsts: m.load("dsts"), srcs: m.load("srcs"),
		ndsts: m.load("ndsts"), nsrcs: m.load("nsrcs"),
		at: m.load("at"), todo: m.load("bytes"),
		dst0: m.GP64(), src0: m.GP64(), src1: m.GP64(),
	}

	f.MOVQ(operand.Mem{Base: f.dsts}, f.dst0)
	f.MOVQ(operand.Mem{Base: f.srcs}, f.src0)
	f.XORQ(f.src1, f.src1)
	f.CMPQ(f.nsrcs, operand.Imm(1))
	f.JEQ(operand.LabelRef("only"))
	f.MOVQ(operand.Mem{Base: f.srcs, Disp: 8}, f.src1)
	f.Label("only")
	for _, o := range e.operations[1:] { // the first one is Sum, and Avg
		f.CMPB(f.argument("op"), operand.Imm(o.number))
		f.JEQ(operand.LabelRef(o.name))
	}
	for _, o := range e.operations {
		f.Label(o.name)
		f.operation(o)
		f.JMP(operand.LabelRef("return"))
	}
	f.Label("return")
	f.VZEROUPPER()
	f.CMPB(f.argument("stream"), operand.Imm(0))
	f.JEQ(operand.LabelRef("stored"))
	f.SFENCE() // otherwise other cores could see the caller's next store before the results
	f.Label("stored")
	f.RET()
}

// operation writes the loops for one operation: one over blocks, one over the remaining vectors.
func (f *function) operation(o operation) {
	s := body{function: f, step: o.step(f.machine)}
	if f.element.half != nil {
		half := f.element.half(f.machine)
		s.half = &half
	}
	if o.finish != nil {
		s.finish = o.finish(f.machine)
	}
	s.name, s.x, s.streams = o.name+"Block", f.vectors(blockBytes/f.width), true
	f.loop(o.name+"Blocks", s, len(s.x)*f.stride)

	s.name, s.x, s.streams = o.name+"Vector", f.vectors(1), false
	f.loop(o.name+"Vectors", s, f.stride)
}

// loop writes a loop whose body reduces that many bytes, and which runs while as many are to do.
func (f *function) loop(name string, s body, bytes int) {
	f.JMP(operand.LabelRef(name))
	f.Label(s.name)
	s.write()
	f.ADDQ(operand.U32(bytes), f.at)
	f.SUBQ(operand.U32(bytes), f.todo)
	f.Label(name)
	f.CMPQ(f.todo, operand.U32(bytes))
	f.JGE(operand.LabelRef(s.name))
}
