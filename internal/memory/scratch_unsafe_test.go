package memory

import (
	"testing"
	"unsafe"
)

// Memory starts at a cache line, and has the length that was asked for.
func TestAligned(t *testing.T) {
	var s Scratch
	check := func(what string, b []byte, n int) {
		t.Helper()
		if len(b) != n || cap(b) != n || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%lineBytes != 0 && n > 0 {
			t.Errorf("%s: %d bytes are %d at %p", what, n, len(b), b)
		}
	}
	for _, n := range []int{0, 1, 63, 64, 100, 7, 5000, 0} {
		check("scratch", s.Bytes(n), n)
		b, err := Aligned(n)
		if err != nil {
			t.Fatal(err)
		}
		check("aligned", b, n)
	}
	if numbers := Elements[float64](&s, 10); len(numbers) != 10 || cap(numbers) != 10 || (*byte)(unsafe.Pointer(&numbers[9])) != &s.Bytes(80)[72] {
		t.Error("elements are not the scratch")
	}
	if before, after := s.Bytes(10), s.Bytes(5000); &before[0] != &after[0] {
		t.Error("scratch that is long enough is replaced")
	}
}
