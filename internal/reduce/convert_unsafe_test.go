package reduce

import (
	"math"
	"testing"
	"unsafe"
)

// All implementations widen and narrow as the loops in Go do, which half_test.go holds to the
// definition: all bits of a float16, and float32s between and at neighbours, at all lengths around
// a vector, and at elements that vectors are not aligned to.
func TestConversions(t *testing.T) {
	const count = 1 << 16
	halves, wide := make([]uint16, count+1)[1:], make([]float32, count+1)[1:]
	for i := range halves {
		halves[i] = uint16(i)
	}
	for _, m := range supported {
		m.widenFloat16s(unsafe.Pointer(&wide[0]), unsafe.Pointer(&halves[0]), count)
		for i, got := range wide {
			if want := float16(i).widen(); math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Fatalf("implementation %d widens %#x to %v instead of %v", m, i, got, want)
			}
		}

		values := make([]float32, 0, 3*count)
		for i := range count {
			bits := math.Float32bits(float16(i).widen())
			for _, b := range []uint32{bits, bits + 0x1000, bits ^ 1} { // itself, the midpoint to the next one, and beside it
				values = append(values, math.Float32frombits(b))
			}
		}
		got := make([]uint16, len(values)+1)[1:]
		m.narrowFloat16s(unsafe.Pointer(&got[0]), unsafe.Pointer(&values[0]), len(values))
		for i, x := range values {
			if want := uint16(toFloat16(x)); got[i] != want && x == x {
				t.Fatalf("implementation %d narrows %v (%#x) to %#x instead of %#x", m, x, math.Float32bits(x), got[i], want)
			}
		}
	}
}

// Conversions write their elements and no others.
func TestConversionsWithinBounds(t *testing.T) {
	const fence = 9
	for _, m := range supported {
		for n := range 40 {
			halves, wide := make([]uint16, n+fence), make([]float32, n+fence)
			for i := range halves {
				halves[i], wide[i] = 0x3c00, 7
			}
			m.widenFloat16s(unsafe.Pointer(&wide[0]), unsafe.Pointer(&halves[0]), n)
			for i, x := range wide {
				if i < n && x != 1 || i >= n && x != 7 {
					t.Fatalf("implementation %d, %d elements: element %d is %v", m, n, i, x)
				}
			}
			clear(halves)
			m.narrowFloat16s(unsafe.Pointer(&halves[0]), unsafe.Pointer(&wide[0]), n)
			for i, h := range halves {
				if i < n && h != 0x3c00 || i >= n && h != 0 {
					t.Fatalf("implementation %d, %d elements: element %d is %#x", m, n, i, h)
				}
			}
		}
	}
}
