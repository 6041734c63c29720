//go:build amd64 && !noasm && !race

package reduce

import (
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

// fold folds bytes of all sources into all destinations, dividing by ranks if op
// is Avg, and returns how many bytes it has done: all of them, or those for which
// there are instructions. The rest is for the Go loops. It does not mind which
// destinations are sources.
func (m implementation) fold(t Type, op Op, dsts, srcs []unsafe.Pointer, bytes, ranks int, stream bool) (done int) {
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
		m.call(t, op, dsts, srcs, done, n, stream, d)
		done += n
	}
	return done
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
		}
	}
}
