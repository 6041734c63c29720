package shm

import "unsafe"

// place returns where b lies in the regions.
func (ep *endpoint) place(b []byte) uint64 {
	if len(b) == 0 {
		return anywhere
	}
	p := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for i, r := range ep.regions.all {
		if r == nil {
			continue
		}
		memory := r.Bytes()
		first := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
		if p >= first && p-first <= uintptr(len(memory)-len(b)) && len(b) <= len(memory) {
			return uint64(i+1)<<regionBits | uint64(p-first)
		}
	}
	return nowhere
}
