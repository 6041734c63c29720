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
