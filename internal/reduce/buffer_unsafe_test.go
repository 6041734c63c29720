package reduce

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// guards is the number of elements before and after a buffer that no function
// may touch.
const guards = 8

// buffer is n elements amid guards. The guards hold values like any other: to
// check a buffer is to compare it as a whole with what it should be.
type buffer[T number] struct{ whole []T }

// newBuffer places n random elements at an offset from the start of their
// memory, beyond the guards.
func newBuffer[T number](o oracle[T], r *rand.Rand, n, offset int) buffer[T] {
	whole := make([]T, guards+offset+n+guards)
	for i := range whole {
		whole[i] = o.value(r)
	}
	return buffer[T]{whole[offset:]}
}

func (b buffer[T]) body() []T          { return b.whole[guards : len(b.whole)-guards] }
func (b buffer[T]) at() unsafe.Pointer { return unsafe.Pointer(&b.whole[guards]) }
func (b buffer[T]) clone() buffer[T]   { return buffer[T]{append([]T(nil), b.whole...)} }

// require fails unless b has the bits of want, guards included.
func (b buffer[T]) require(t *testing.T, want buffer[T], what string, args ...any) {
	t.Helper()
	for i := range want.whole {
		if !same(b.whole[i], want.whole[i]) {
			t.Errorf(what, args...)
			t.Fatalf("element %d of %d is %v, want %v", i-guards, len(b.body()), b.whole[i], want.whole[i])
		}
	}
}

// pointers returns the addresses of buffers.
func pointers[T number](buffers []buffer[T]) []unsafe.Pointer {
	ps := make([]unsafe.Pointer, len(buffers))
	for k, b := range buffers {
		ps[k] = b.at()
	}
	return ps
}
