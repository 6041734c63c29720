//go:build amd64 && !noasm && !race

package reduce

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// supported lists the implementations that this machine can run, the fastest one
// last.
var supported = func() []implementation {
	list := []implementation{plain}
	if cpu.X86.HasAVX2 && cpu.X86.HasF16C {
		list = append(list, avx2)
	}
	if len(list) == 2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasBMI2 {
		list = append(list, avx512)
	}
	return list
}()

// callBytes is the most that one call of assembly works on, counted over all
// buffers: the scheduler cannot stop a goroutine in it, nor can the garbage
// collector, for which that is some 10 us from memory.
const callBytes = 256 << 10

// fold folds bytes of all sources into all destinations, from the byte at on, dividing
// by ranks if op is Avg, and returns how many bytes it has done: all of them, or those
// for which there are instructions, which is none where there is no assembly for t and
// op. The rest is for the Go loops. It does not mind which destinations are sources.
// Only from the beginning of the buffers on may it stream.
func (m implementation) fold(t Type, op Op, dsts, srcs []unsafe.Pointer, at, bytes, ranks int, stream bool) (done int) {
	if t = kernels[t][op]; t == none {
		return 0
	}
	if m == avx512 && bytes < line {
		// A vector that is masked touches the cache line after what it reads all the
		// same, and that may be in use by another core.
		m = avx2
	}
	switch m {
	case plain:
		return 0
	case avx2:
		bytes &^= 31
	}
	var d divisor
	if op == Avg {
		d = divisorOf(t, ranks)
	}
	if stream {
		head, same := beforeLine(dsts)
		stream = same && head < bytes && (m == avx512 || head%32 == 0)
		if stream && head > 0 {
			m.call(t, op, dsts, srcs, 0, head, false, d)
			done = head
		}
	}
	piece := pieceBytes(len(dsts) + len(srcs))
	for done < bytes {
		n := min(piece, bytes-done)
		m.call(t, op, dsts, srcs, at+done, n, stream, d)
		done += n
	}
	return done
}

// none stands for a type where there is no assembly.
const none Type = math.MaxUint8

// kernels says by the assembly for which type an operation gives the right bits: sums
// and products of integers do not depend on the sign, operations on bits not even on
// the size, and a complex sum is one of twice as many floats. Where there is none, the
// loops in Go do it. An average that has none is a sum by assembly all the same, tile
// by tile, and a division in Go.
var kernels = [len(types)][len(ops)]Type{
	Uint8:      {Uint8, Uint8, Uint8, Uint8, Uint8, Uint8, Uint8, Uint8},
	Int32:      {Int32, Int32, Int32, Int32, Int32, Uint8, Uint8, Uint8},
	Int64:      {Int64, Int64, Int64, Int64, Int64, Uint8, Uint8, Uint8},
	Float32:    {Float32, Float32, Float32, Float32, Float32, none, none, none},
	Float64:    {Float64, Float64, Float64, Float64, Float64, none, none, none},
	Float16:    {Float16, Float16, Float16, Float16, Float16, none, none, none},
	BFloat16:   {BFloat16, BFloat16, BFloat16, BFloat16, BFloat16, none, none, none},
	Int8:       {Uint8, none, Uint8, Int8, Int8, Uint8, Uint8, Uint8},
	Int16:      {Int16, none, Int16, Int16, Int16, Uint8, Uint8, Uint8},
	Uint16:     {Int16, none, Int16, Uint16, Uint16, Uint8, Uint8, Uint8},
	Uint32:     {Int32, none, Int32, Uint32, Uint32, Uint8, Uint8, Uint8},
	Uint64:     {Int64, none, Int64, Uint64, Uint64, Uint8, Uint8, Uint8},
	Complex64:  {Float32, Float32, none, none, none, none, none, none},
	Complex128: {Float64, Float64, none, none, none, none, none, none},
}

// line is the length of a cache line.
const line = 64

// pieceBytes returns how much of each buffer one call works on, in blocks as the
// assembly folds them, at least one.
func pieceBytes(buffers int) int {
	const block = 256
	return max(callBytes/buffers&^(block-1), block)
}

// beforeLine returns how many bytes of each buffer lie before its first cache line,
// and whether that is the same for all: if not, they cannot be stored past the caches
// together.
func beforeLine(buffers []unsafe.Pointer) (bytes int, same bool) {
	at := uintptr(buffers[0]) % line
	for _, p := range buffers[1:] {
		if uintptr(p)%line != at {
			return 0, false
		}
	}
	return int(-at % line), true
}

// call makes one call of assembly. The functions are named one by one, since
// through a variable the compiler could not see that they keep no pointer.
func (m implementation) call(t Type, op Op, dsts, srcs []unsafe.Pointer, at, bytes int, stream bool, d divisor) {
	to, ndsts := (**byte)(unsafe.Pointer(&dsts[0])), len(dsts)
	from, nsrcs := (**byte)(unsafe.Pointer(&srcs[0])), len(srcs)
	o := uint8(op)
	switch m {
	case avx2:
		switch t {
		case Uint8:
			foldUint8AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Int32:
			foldInt32AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Int64:
			foldInt64AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Float32:
			foldFloat32AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Float64:
			foldFloat64AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Float16:
			foldFloat16AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case BFloat16:
			foldBFloat16AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Int8:
			foldInt8AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Int16:
			foldInt16AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Uint16:
			foldUint16AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Uint32:
			foldUint32AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Uint64:
			foldUint64AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		}
	case avx512:
		switch t {
		case Uint8:
			foldUint8AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Int32:
			foldInt32AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Int64:
			foldInt64AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Float32:
			foldFloat32AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Float64:
			foldFloat64AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Float16:
			foldFloat16AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case BFloat16:
			foldBFloat16AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Int8:
			foldInt8AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Int16:
			foldInt16AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Uint16:
			foldUint16AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Uint32:
			foldUint32AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		case Uint64:
			foldUint64AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		}
	}
}
