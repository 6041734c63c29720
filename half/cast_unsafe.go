package half

import "unsafe"

// AsFloat16 reinterprets s, whose elements hold the bits, without a copy.
func AsFloat16[T ~uint16](s []T) []Float16 {
	return unsafe.Slice((*Float16)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// AsBFloat16 reinterprets s, whose elements hold the bits, without a copy.
func AsBFloat16[T ~uint16](s []T) []BFloat16 {
	return unsafe.Slice((*BFloat16)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
