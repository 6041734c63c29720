package measure

import "github.com/goccl/goccl/ccl"

// Inputs repeat after period elements. Every call shifts them by one, so that what
// is left over from another call is never right. period is a prime, so that no
// block, chunk or line of anybody's has the same values as its neighbour, and small
// enough for Go's copy to move that many elements by plain stores, as a program
// would that computes them: its string instructions and non-temporal stores would
// leave the caches in another state.
const period = 251

// value returns element i of a rank's input. Of these, any sum over so many ranks as come
// together is exact, whatever its order; so are products.
func (e elements[T]) value(op ccl.Op, rank, i, together int) T {
	if op == ccl.Product {
		if (i+rank)%4 == 3 {
			return e.base
		}
		return e.of(1)
	}
	if apart := (together-1)/e.most + 1; rank%apart != 0 { // more ranks than can all have something
		return e.of(0)
	}
	largest := min(period/2, max(1, e.most/together-1)) // complex numbers have one more
	return e.of(((i*37+rank*101)%period - period/2) % (largest + 1))
}

// pattern returns two periods of what element i has, so that a period can begin
// anywhere in the first.
func pattern[T any](element func(i int) T) []T {
	p := make([]T, 2*period)
	for i := range period {
		p[i] = element(i)
	}
	copy(p[period:], p[:period])
	return p
}

// reductions returns the patterns of what comes of the inputs' patterns: what a scan gives
// each rank, the last of which is the reduction of all. Avg, which no scan has, is there
// only.
func (e elements[T]) reductions(op ccl.Op, inputs [][]T) [][]T {
	all := make([][]T, len(inputs))
	running := inputs[0]
	for r, x := range inputs {
		if r > 0 {
			running = pattern(func(i int) T { return e.reduce(op, running[i], x[i]) })
		}
		all[r] = running
	}
	if op == ccl.Avg {
		all[len(all)-1] = pattern(func(i int) T { return e.divide(running[i], len(inputs)) })
	}
	return all
}

// fill writes a pattern to x, from a phase below period on.
func fill[T any](x, pattern []T, phase int) {
	for lo := 0; lo < len(x); lo += period {
		copy(x[lo:], pattern[phase:phase+period])
	}
}

// differing returns how many elements of x are not those of a pattern from a phase on.
func differing[T comparable](x, pattern []T, phase int) (wrong int) {
	phase %= period
	for lo := 0; lo < len(x); lo += period {
		got := x[lo:min(lo+period, len(x))]
		want := pattern[phase:][:len(got)]
		for i, v := range got {
			if v != want[i] {
				wrong++
			}
		}
	}
	return wrong
}

// read loads one element of every cache line of x, and returns how many of them are not
// the first.
func read[T ccl.Element](x []T) (others int) {
	const line = 64
	step := line / ccl.DTypeOf[T]().Size()
	for i := 0; i < len(x); i += step {
		if x[i] != x[0] {
			others++
		}
	}
	return others
}
