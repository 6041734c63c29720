package ccl

import (
	"cmp"
	"math/bits"
	"unsafe"

	"github.com/goccl/goccl/transport"
)

// bufferOf returns the memory of s as a Buffer.
func bufferOf[T Element](s []T) Buffer {
	var t T
	size := uint(unsafe.Sizeof(t))
	return Buffer{
		data:  unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uint(len(s))*size),
		shift: uint8(bits.TrailingZeros(size)),
	}
}

// pointer returns the address of b's first byte; it may be nil if b is empty.
func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// same reports whether a and b are the same memory.
func same(a, b []byte) bool { return pointer(a) == pointer(b) && len(a) == len(b) }

// spanOf returns the addresses of b.
func spanOf(b []byte) transport.Span {
	if len(b) == 0 {
		return transport.Span{}
	}
	at := uint64(uintptr(pointer(b)))
	return transport.Span{Lo: at, Hi: at + uint64(len(b))}
}

// overlap reports whether a and b share memory.
func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	p, q := uintptr(pointer(a)), uintptr(pointer(b))
	return p < q+uintptr(len(b)) && q < p+uintptr(len(a))
}

// spareBuffer returns memory of the communicator for n elements of a call's input, until the next
// call.
func (e *engine) spareBuffer(n int, shift uint8) Buffer {
	return Buffer{data: e.scratch.spare.Bytes(n << shift), shift: shift}
}

// elements returns the n elements that lie in b.
func elements[T Element](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// find returns the position of b in whole, in bytes, if it lies there.
func find(b, whole []byte) (at int, ok bool) {
	from, to := uintptr(pointer(b)), uintptr(pointer(whole))
	return int(from - to), from >= to && from+uintptr(len(b)) <= to+uintptr(len(whole))
}

// comparePlaces orders memory by its address.
func comparePlaces(a, b []byte) int {
	return cmp.Compare(uintptr(pointer(a)), uintptr(pointer(b)))
}
