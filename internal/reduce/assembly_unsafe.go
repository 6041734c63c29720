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
	if len(list) == 2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ {
		list = append(list, avx512)
	}
	return list
}()

// callBytes is the most that one call of assembly processes, over all buffers: neither the
// scheduler nor the garbage collector can stop a goroutine in it. From memory that takes
// some 10 us.
const callBytes = 256 << 10

// reduce reduces bytes of all sources into all destinations, from byte at on, and divides by
// ranks if op is Avg. It returns the number of bytes done: a multiple of the vector length,
// or 0 if no assembly for t and op exists. The Go loops do the rest. Any destination may be
// any source. With stream, at is 0.
func (m implementation) reduce(t Type, op Op, dsts, srcs []unsafe.Pointer, at, bytes, ranks int, stream bool) (done int) {
	if t = kernels[t][op]; m == plain || t == none {
		return 0
	}
	bytes &^= 31 // a vector of AVX2, or half of one of AVX-512 that is widened
	var d divisor
	if op == Avg {
		d = divisorOf(t, ranks)
	}
	if stream {
		head, same := beforeLine(dsts)
		stream = same && head < bytes && head%32 == 0
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

// widen converts the first float16s of n, as many as fill vectors, and returns their number. The Go
// loops do the rest.
func (m implementation) widen(dst, src unsafe.Pointer, n int) (done int) {
	for m != plain && n-done >= 8 {
		k := min(n-done, callBytes/8) &^ 7
		widenFloat16sAVX2((*byte)(unsafe.Add(dst, 4*done)), (*byte)(unsafe.Add(src, 2*done)), k)
		done += k
	}
	return done
}

// narrow is the opposite of widen.
func (m implementation) narrow(dst, src unsafe.Pointer, n int) (done int) {
	for m != plain && n-done >= 8 {
		k := min(n-done, callBytes/8) &^ 7
		narrowFloat16sAVX2((*byte)(unsafe.Add(dst, 2*done)), (*byte)(unsafe.Add(src, 4*done)), k)
		done += k
	}
	return done
}

// none stands for a type without assembly.
const none Type = math.MaxUint8

// kernels names the type whose assembly gives the right bits for an operation: sums and
// products of integers do not depend on the sign, operations on bits not even on the size,
// and a complex sum is one of twice as many floats. For none, the loops in Go
// reduce. An average that has none divides in Go, tile by tile, after a sum by assembly if
// the sum has one.
var kernels = [len(types)][len(ops)]Type{
	Uint8:      {Uint8, Uint8, Uint8, Uint8, Uint8, Uint8, Uint8, Uint8},
	Int32:      {Int32, Int32, Int32, Int32, Int32, Uint8, Uint8, Uint8},
	Int64:      {Int64, Int64, Int64, Int64, Int64, Uint8, Uint8, Uint8},
	Float32:    {Float32, Float32, Float32, Float32, Float32, none, none, none},
	Float64:    {Float64, Float64, Float64, Float64, Float64, none, none, none},
	Float16:    {Float16, Float16, Float16, Float16, Float16, none, none, none},
	BFloat16:   {BFloat16, BFloat16, BFloat16, BFloat16, BFloat16, none, none, none},
	Int8:       {Uint8, none, Uint8, none, none, Uint8, Uint8, Uint8},
	Int16:      {none, none, none, none, none, Uint8, Uint8, Uint8},
	Uint16:     {none, none, none, none, none, Uint8, Uint8, Uint8},
	Uint32:     {Int32, none, Int32, none, none, Uint8, Uint8, Uint8},
	Uint64:     {Int64, none, Int64, none, none, Uint8, Uint8, Uint8},
	Complex64:  {Float32, Float32, none, none, none, none, none, none},
	Complex128: {Float64, Float64, none, none, none, none, none, none},
	Bool:       {none, none, none, Uint8, Uint8, Uint8, Uint8, Uint8},
}

// line is the length of a cache line.
const line = 64

// pieceBytes returns the length of each buffer that one call processes, a positive number of
// the assembly's blocks.
func pieceBytes(buffers int) int {
	const block = 256
	return max(callBytes/buffers&^(block-1), block)
}

// beforeLine returns the number of bytes of each buffer before its first whole cache line,
// and whether it is the same for all: if not, they cannot be stored past the caches together.
func beforeLine(buffers []unsafe.Pointer) (bytes int, same bool) {
	at := uintptr(buffers[0]) % line
	for _, p := range buffers[1:] {
		if uintptr(p)%line != at {
			return 0, false
		}
	}
	return int(-at % line), true
}

// call makes one call of assembly, for n elements that take that many bytes, a multiple of 32, from
// byte at on:
//
//	for i := range n {
//		x := srcs[0][i]
//		for _, src := range srcs[1:] {
//			x = x op src[i]
//		}
//		x = x / by
//		for _, dst := range dsts {
//			dst[i] = x
//		}
//	}
//
// Only sums are divided, by d. For 16-bit floats x is a float32, rounded when it is stored. The
// assembly reads a block of 256 bytes of every source, for 16-bit floats 128, before it stores
// results, so any destination may be any source. With stream it stores whole blocks past the
// caches, and every destination must be aligned to 64 bytes.
//
// The functions are named one by one, since through a variable the compiler could not see that
// they keep no pointer.
func (m implementation) call(t Type, op Op, dsts, srcs []unsafe.Pointer, at, bytes int, stream bool, d divisor) {
	to, ndsts := (**byte)(unsafe.Pointer(&dsts[0])), len(dsts)
	from, nsrcs := (**byte)(unsafe.Pointer(&srcs[0])), len(srcs)
	o := uint8(op)

	switch t {
	case Uint8:
		reduceUint8AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
	case Int32:
		reduceInt32AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
	case Int64:
		reduceInt64AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)

	case Float32:
		reduceFloat32AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
	case Float64:
		reduceFloat64AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
	case Float16:
		reduceFloat16AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)

	case BFloat16:
		if m == avx512 {
			reduceBFloat16AVX512(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		} else {
			reduceBFloat16AVX2(o, to, from, ndsts, nsrcs, at, bytes, stream, d.mode, d.factor, d.shift)
		}
	}
}
