package reduce

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// guards is the number of elements before and after a buffer, which no function may touch.
const guards = 16

// buffer is n elements between guards. Guards hold ordinary values, so a check compares the whole
// buffer with the expected one.
type buffer[T element] struct{ whole []T }

// newBuffer places n random elements between guards, offset elements beyond a multiple of 64
// bytes.
func newBuffer[T element](o oracle[T], r *rand.Rand, n, offset int) buffer[T] {
	b := newRoom[T](n, offset)
	for i := range b.whole {
		b.whole[i] = o.value(r)
	}
	return b
}

// newRoom makes room for n elements and their guards.
func newRoom[T element](n, offset int) buffer[T] {
	size := int(unsafe.Sizeof(T(0)))
	room := make([]T, guards+64/size+n+guards)
	for i := range room {
		if at := unsafe.Pointer(&room[guards+i]); uintptr(at)%64 == uintptr(offset*size%64) {
			return buffer[T]{room[i : i+guards+n+guards]}
		}
	}
	panic("unaligned memory")
}

// full returns a buffer in which every element, guards included, is v.
func full[T element](n int, v T) buffer[T] {
	b := newRoom[T](n, 0)
	for i := range b.whole {
		b.whole[i] = v
	}
	return b
}

func (b buffer[T]) body() []T          { return b.whole[guards : len(b.whole)-guards] }
func (b buffer[T]) at() unsafe.Pointer { return unsafe.Pointer(&b.whole[guards]) }
func (b buffer[T]) raw() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&b.whole[0])), len(b.whole)*int(unsafe.Sizeof(b.whole[0])))
}
func (b buffer[T]) clone() buffer[T] { return buffer[T]{slices.Clone(b.whole)} }

// require fails unless b has the bits of want, guards included.
func (b buffer[T]) require(t *testing.T, want buffer[T], what string, args ...any) {
	t.Helper()
	if bytes.Equal(b.raw(), want.raw()) {
		return
	}
	for i := range want.whole {
		if !same(b.whole[i], want.whole[i]) {
			t.Errorf(what, args...)
			t.Fatalf("element %d of %d is %v, want %v", i-guards, len(b.body()), b.whole[i], want.whole[i])
		}
	}
}

// pointers returns the addresses of buffers.
func pointers[T element](buffers []buffer[T]) []unsafe.Pointer {
	ps := make([]unsafe.Pointer, len(buffers))
	for k, b := range buffers {
		ps[k] = b.at()
	}
	return ps
}

// fromBytes returns the element that a machine of this kind reads from raw.
func fromBytes[T element](raw []byte) T {
	var x T
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&x)), unsafe.Sizeof(x)), raw)
	return x
}
