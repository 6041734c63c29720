package shm

import (
	"unsafe"

	"github.com/goccl/goccl/internal/memory"
)

// arena is memory without pointers that all ranks share.
type arena struct {
	base unsafe.Pointer // aligned to 128
	size int
}

// heapArena returns an arena of size zero bytes on the heap. The garbage collector neither
// scans nor moves it.
func heapArena(size int) arena {
	var room memory.Scratch // new, so its bytes are zero
	return arena{base: unsafe.Pointer(unsafe.SliceData(room.Bytes(size))), size: size}
}

// at returns the T at offset off, which must be a multiple of T's alignment.
func at[T any](a arena, off int) *T {
	var t T
	a.check(off, int(unsafe.Sizeof(t)))
	return (*T)(unsafe.Add(a.base, off))
}

// bytes returns the n bytes at offset off.
func (a arena) bytes(off, n int) []byte {
	a.check(off, n)
	return unsafe.Slice((*byte)(unsafe.Add(a.base, off)), n)[:n:n]
}

func (a arena) check(off, n int) {
	if off < 0 || n < 0 || off > a.size-n {
		panic("shm: offset outside of the arena")
	}
}
