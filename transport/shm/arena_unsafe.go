package shm

import "unsafe"

// arena is memory without pointers that all ranks share.
type arena struct {
	base unsafe.Pointer // aligned to 128
	size int
}

// heapArena returns an arena of size zero bytes on the heap. The garbage collector neither
// scans nor moves it.
func heapArena(size int) arena { return arenaIn(make([]byte, size+127), size) }

// arenaIn returns an arena of size bytes in room, which must be 127 bytes longer.
func arenaIn(room []byte, size int) arena {
	base := unsafe.Pointer(unsafe.SliceData(room))
	if off := uintptr(base) % 128; off != 0 {
		base = unsafe.Add(base, 128-off)
	}
	return arena{base: base, size: size}
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
