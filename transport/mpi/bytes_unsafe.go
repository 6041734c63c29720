package mpi

import "unsafe"

// bytesOf returns the memory of elements.
func bytesOf[T Element](s []T) []byte {
	var element T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(element)))
}
