package memory

import "unsafe"

// lineBytes is the length of a pair of cache lines, which processors fetch together.
const lineBytes = 128

// Scratch is memory that is kept, and grows when more is needed. The zero Scratch is empty. One
// goroutine at a time uses it.
type Scratch []byte

// Bytes returns n bytes that start at a pair of cache lines. Their contents are unspecified.
func (s *Scratch) Bytes(n int) []byte {
	if cap(*s) < n || *s == nil {
		*s = align(make([]byte, n+lineBytes), n)
	}
	return (*s)[:n:n]
}

// Elements returns memory of s for n elements, which have no pointers.
func Elements[T any](s *Scratch, n int) []T {
	b := s.Bytes(n * int(unsafe.Sizeof(*new(T))))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Aligned is Bytes for memory that starts at a pair of cache lines.
func Aligned(n int) ([]byte, error) {
	room, err := Bytes(n + lineBytes)
	if err != nil {
		return nil, err
	}
	return align(room, n), nil
}

// align returns n bytes of room that start at a pair of cache lines.
func align(room []byte, n int) []byte {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(room))) % lineBytes)
	return room[skip : skip+n : skip+n]
}
