package reduce

import "unsafe"

// Truth stores which of n elements of type t are not zero: dst[i] is 1 if src[i] != 0, otherwise 0.
// t is a type of integers. dst is src exactly or does not overlap it.
//
// A logical operation on integers is the bitwise operation of the same name on their truths.
func Truth(t Type, dst, src unsafe.Pointer, n int) {
	switch t.Size() { // the sign does not matter
	case 1:
		truths(view[uint8](dst, n), view[uint8](src, n))
	case 2:
		truths(view[uint16](dst, n), view[uint16](src, n))
	case 4:
		truths(view[uint32](dst, n), view[uint32](src, n))
	case 8:
		truths(view[uint64](dst, n), view[uint64](src, n))
	}
}

func truths[T integer](dst, src []T) {
	src = src[:len(dst)]
	for i, x := range src {
		truth := T(0)
		if x != 0 {
			truth = 1
		}
		dst[i] = truth
	}
}
