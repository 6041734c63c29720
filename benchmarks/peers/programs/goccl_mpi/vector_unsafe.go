package main

import "unsafe"

// resize makes x that many elements, at least one.
func (s *subject) resize(count int) {
	s.x = make([]float32, count)
	s.bytes = unsafe.Slice((*byte)(unsafe.Pointer(&s.x[0])), 4*count)
}
