package flight

import "unsafe"

// layout returns the table and the lanes of a part. ok is false if it is too short or not aligned
// to 8 bytes.
func layout(part []byte) (t *table, lanes []laneMemory, ok bool) {
	base := unsafe.Pointer(unsafe.SliceData(part))
	if len(part) < pageBytes+laneBytes || uintptr(base)%8 != 0 {
		return nil, nil, false
	}
	return (*table)(base), unsafe.Slice((*laneMemory)(unsafe.Add(base, pageBytes)), (len(part)-pageBytes)/laneBytes), true
}
