package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockBytes is what is reduced of every source at once, as it lies in registers,
// in as many as that takes: four of AVX-512, and eight of the sixteen of AVX2, where
// an operation needs the others. More is no faster for two sources, and slower for
// many. Nor does prefetching help.
const blockBytes = 256

const signature = "func(op uint8, dsts, srcs **byte, ndsts, nsrcs, at, bytes int, stream bool, mode, factor, shift uint64)"

const doc = `reduce%[1]s%[2]s reduces bytes bytes from at on, a multiple of 32,
taken as n elements of type %[3]s:

	for i := range n {
		x := srcs[0][i]
		for _, src := range srcs[1:] {
			x = x op src[i]
		}
		x = x / by
		for _, dst := range dsts {
			dst[i] = x
		}
	}

op is the number of an Op; mode, factor and shift are those of the divisor by, for
sums. Of a block of %[4]d bytes every source is read before a result is stored, so
that a destination may be any of the sources. With stream whole blocks are stored
past the caches, and every destination is aligned to 64 bytes.`

// A function reduces any number of sources of one type into any number of
// destinations.
type function struct {
	*machine
	element                  element
	stride                   int           // bytes in memory that fill a vector
	dsts, srcs, ndsts, nsrcs reg.Register  // pointers and their numbers
	at, left                 reg.Register  // bytes that are done or skipped, bytes to do
	dst0, src0, src1         reg.GPVirtual // the first pointers; src1 only if there is one
}

func (m *machine) function(e element) {
	m.Function("reduce" + e.name + m.name)
	block, stride := blockBytes, m.width
	if e.half != nil { // half of what it is in registers
		block, stride = block/2, stride/2
	}
	text := fmt.Sprintf(doc, e.name, m.name, strings.ToLower(e.name), block)
	if e.half != nil {
		text += "\n\nHere x is a float32, rounded when it is stored."
	}
	m.Doc(strings.Split(text, "\n")...)
	m.Attributes(attr.NOSPLIT)
	m.Pragma("noescape")
	m.SignatureExpr(signature)
	f := function{
		machine: m, element: e, stride: stride,
		dsts: m.load("dsts"), srcs: m.load("srcs"),
		ndsts: m.load("ndsts"), nsrcs: m.load("nsrcs"),
		at: m.load("at"), left: m.load("bytes"),
		dst0: m.GP64(), src0: m.GP64(), src1: m.GP64(),
	}
	f.MOVQ(operand.Mem{Base: f.dsts}, f.dst0)
	f.MOVQ(operand.Mem{Base: f.srcs}, f.src0)
	f.XORQ(f.src1, f.src1)
	f.CMPQ(f.nsrcs, operand.Imm(1))
	f.JEQ(operand.LabelRef("only"))
	f.MOVQ(operand.Mem{Base: f.srcs, Disp: 8}, f.src1)
	f.Label("only")
	for _, o := range e.operations[1:] { // the first one is Sum, and Avg, where there is one
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
	f.SFENCE() // or else the results might be seen later than what the caller stores next
	f.Label("stored")
	f.RET()
}

// operation writes the loops for one operation: over blocks, and over the vectors
// that are left.
func (f *function) operation(o operation) {
	s := stretch{function: f, step: o.step(f.machine)}
	if f.element.half != nil {
		half := f.element.half(f.machine)
		s.half = &half
	}
	if o.finish != nil {
		s.finish = o.finish(f.machine)
	}
	s.name, s.x, s.streams = o.name+"Block", f.vectors(blockBytes/f.width), true
	block := len(s.x) * f.stride // bytes in memory
	f.loop(o.name+"Blocks", s, block)

	s.name, s.x, s.streams = o.name+"Vector", f.vectors(1), false
	f.loop(o.name+"Vectors", s, f.stride)
}

// loop writes a loop that reduces by bytes as long as that many are left.
func (f *function) loop(name string, s stretch, bytes int) {
	f.JMP(operand.LabelRef(name))
	f.Label(s.name)
	s.write()
	f.ADDQ(operand.U32(bytes), f.at)
	f.SUBQ(operand.U32(bytes), f.left)
	f.Label(name)
	f.CMPQ(f.left, operand.U32(bytes))
	f.JGE(operand.LabelRef(s.name))
}
