package half

import "unsafe"

// AsFloat16 returns the same memory as s, as halves: the elements of s are their bits.
func AsFloat16[T ~uint16](s []T) []Float16 {
	return unsafe.Slice((*Float16)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// AsBFloat16 returns the same memory as s, as halves: the elements of s are their bits.
func AsBFloat16[T ~uint16](s []T) []BFloat16 {
	return unsafe.Slice((*BFloat16)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
