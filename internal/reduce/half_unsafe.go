package reduce

import "unsafe"

// halfTile is the number of elements that halves holds in float32 at a time.
const halfTile = 256

// halves is Many in Go for Float16 and BFloat16, for the elements from done to n.
// The running result is float32 from the first source to the division, and rounded
// when it is stored, by which time every source of a tile has been read.
func halves(t Type, op Op, dsts, srcs []unsafe.Pointer, done, n, ranks int) {
	var room [2][halfTile]float32
	for ; done < n; done += halfTile {
		at, count := done*t.Size(), min(n-done, halfTile)
		acc, x := room[0][:count], room[1][:count]
		widenAt(t, acc, unsafe.Add(srcs[0], at))
		for _, src := range srcs[1:] {
			widenAt(t, x, unsafe.Add(src, at))
			reduceFloats(op, acc, x)
		}

		if op == Avg && ranks > 1 {
			divideFloats(acc, ranks)
		}
		first := unsafe.Add(dsts[0], at)
		narrowAt(t, first, acc)
		for _, dst := range dsts[1:] {
			move(unsafe.Add(dst, at), first, count*t.Size())
		}
	}
}

// WidenFloat16s stores the n numbers of type [Float16] at src to dst, as float32s. The buffers do
// not overlap.
func WidenFloat16s(dst, src unsafe.Pointer, n int) { best.widenFloat16s(dst, src, n) }

func (m implementation) widenFloat16s(dst, src unsafe.Pointer, n int) {
	if done := m.widen(dst, src, n); done < n { // no pointer past the end: it could be to another object
		widenAt(Float16, view[float32](unsafe.Add(dst, 4*done), n-done), unsafe.Add(src, 2*done))
	}
}

// NarrowFloat16s stores the n float32s at src to dst, rounded to [Float16] as [Many] rounds. The
// buffers do not overlap.
func NarrowFloat16s(dst, src unsafe.Pointer, n int) { best.narrowFloat16s(dst, src, n) }

func (m implementation) narrowFloat16s(dst, src unsafe.Pointer, n int) {
	if done := m.narrow(dst, src, n); done < n {
		narrowAt(Float16, unsafe.Add(dst, 2*done), view[float32](unsafe.Add(src, 4*done), n-done))
	}
}

func widenAt(t Type, to []float32, from unsafe.Pointer) {
	if t == Float16 {
		widenFloat16s(to, view[float16](from, len(to)))
	} else {
		widenBFloat16s(to, view[bfloat16](from, len(to)))
	}
}

func narrowAt(t Type, to unsafe.Pointer, from []float32) {
	if t == Float16 {
		narrowFloat16s(view[float16](to, len(from)), from)
	} else {
		narrowBFloat16s(view[bfloat16](to, len(from)), from)
	}
}

// halfLoops returns the loops over two operands for Float16 or BFloat16.
func halfLoops(t Type) (all loops) {
	for _, op := range []Op{Sum, Product, Min, Max} {
		all[op] = func(dst, a, b unsafe.Pointer, n int) {
			dsts, srcs := [...]unsafe.Pointer{dst}, [...]unsafe.Pointer{a, b}
			halves(t, op, dsts[:], srcs[:], 0, n, 1)
		}
	}
	return all
}

func halfDivision(t Type) func(p unsafe.Pointer, n, by int) {
	return func(p unsafe.Pointer, n, by int) {
		ps := [...]unsafe.Pointer{p}
		halves(t, Avg, ps[:], ps[:], 0, n, by)
	}
}
