package reduce

import "unsafe"

// Scale multiplies n elements of type t by a factor: dst[i] = factor * src[i]. dst is
// src exactly or does not overlap it.
//
// The factor is rounded to the type of the elements, and so is each product; for
// [Float16] and [BFloat16] the factor is rounded to float32, the product of float32s to
// the type. Of a complex number both parts are multiplied. For integers the factor is
// an integer that the type has, and products wrap.
func Scale(t Type, dst, src unsafe.Pointer, n int, factor float64) {
	scales[t](dst, src, n, factor)
}

var scales = [len(types)]func(dst, src unsafe.Pointer, n int, factor float64){
	Uint8:      scaleIntsAt[uint8],
	Int32:      scaleIntsAt[int32],
	Int64:      scaleIntsAt[int64],
	Float32:    scaleFloatsAt[float32],
	Float64:    scaleFloatsAt[float64],
	Float16:    halfScale(Float16),
	BFloat16:   halfScale(BFloat16),
	Int8:       scaleIntsAt[int8],
	Int16:      scaleIntsAt[int16],
	Uint16:     scaleIntsAt[uint16],
	Uint32:     scaleIntsAt[uint32],
	Uint64:     scaleIntsAt[uint64],
	Complex64:  func(dst, src unsafe.Pointer, n int, by float64) { scaleFloatsAt[float32](dst, src, 2*n, by) },
	Complex128: func(dst, src unsafe.Pointer, n int, by float64) { scaleFloatsAt[float64](dst, src, 2*n, by) },
}

func scaleIntsAt[T integer](dst, src unsafe.Pointer, n int, factor float64) {
	scaleInts(view[T](dst, n), view[T](src, n), factor)
}

func scaleFloatsAt[T float](dst, src unsafe.Pointer, n int, factor float64) {
	scaleFloats(view[T](dst, n), view[T](src, n), T(factor))
}

func halfScale(t Type) func(dst, src unsafe.Pointer, n int, factor float64) {
	return func(dst, src unsafe.Pointer, n int, factor float64) {
		var room [halfTile]float32
		for done := 0; done < n; done += halfTile {
			at := done * t.Size()
			x := room[:min(n-done, halfTile)]
			widenAt(t, x, unsafe.Add(src, at))
			scaleFloats(x, x, float32(factor))
			narrowAt(t, unsafe.Add(dst, at), x)
		}
	}
}
