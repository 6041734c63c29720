package shm

import "unsafe"

// locate returns the number of the region that b lies in and b's offset there, or anywhere or
// nowhere.
func (rs *regions) locate(b []byte) (region, offset uint64) {
	if len(b) == 0 {
		return anywhere, 0
	}
	p := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for _, r := range rs.all {
		first := uintptr(unsafe.Pointer(unsafe.SliceData(r.bytes)))
		if p >= first && len(b) <= len(r.bytes) && p-first <= uintptr(len(r.bytes)-len(b)) {
			return r.number, uint64(p - first)
		}
	}
	return nowhere, 0
}
