package measure

import "github.com/goccl/goccl/ccl"

// Inputs repeat after period elements. Every call shifts them by one, so that what
// is left over from another call is never right. period is a prime, so that no
// block, chunk or line of anybody's has the same values as its neighbour, and small
// enough for Go's copy to move that many elements by plain stores, as a program
// would that computes them: its string instructions and non-temporal stores would
// leave the caches in another state.
const period = 251

// value returns element i of a rank's input, an integer so small that floats add
// the values of all ranks exactly in any order.
func value[T scalar](op ccl.Op, rank, i int) T {
	if op == ccl.Product {
		return 1 + T((i+rank)%4/3)
	}
	return T((i*37+rank*101)%period - period/2)
}

// pattern returns two periods of what element i has, so that a period can begin
// anywhere in the first.
func pattern[T scalar](element func(i int) T) []T {
	p := make([]T, 2*period)
	for i := range p {
		p[i] = element(i % period)
	}
	return p
}

// reduced is element i of the reduction of all ranks' inputs.
func reduced[T scalar](op ccl.Op, ranks, i int) T {
	acc := value[T](op, 0, i)
	for r := 1; r < ranks; r++ {
		switch x := value[T](op, r, i); op {
		case ccl.Product:
			acc *= x
		case ccl.Min:
			acc = min(acc, x)
		case ccl.Max:
			acc = max(acc, x)
		default:
			acc += x
		}
	}
	if op != ccl.Avg {
		return acc
	}
	if one := T(1); one/2 != 0 { // floats
		return acc / T(ranks)
	}
	return T(int64(acc) / int64(ranks))
}

// fill writes a pattern to x, from a phase below period on.
func fill[T scalar](x, pattern []T, phase int) {
	for lo := 0; lo < len(x); lo += period {
		copy(x[lo:], pattern[phase:phase+period])
	}
}

// differing returns how many elements of x are not those of a pattern.
func differing[T scalar](x, pattern []T, phase int) (wrong int) {
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

// read loads one element of every cache line of x.
func read[T scalar](x []T) (sum T) {
	const line = 64
	step := line / ccl.DTypeOf[T]().Size()
	for i := 0; i < len(x); i += step {
		sum += x[i]
	}
	return sum
}
