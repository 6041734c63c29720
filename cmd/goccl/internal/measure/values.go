package measure

import "github.com/goccl/goccl/ccl"

// Inputs repeat after period elements. Every call shifts them by one, so that data
// of another call is never right. period is a prime, so that no
// block, chunk or cache line has the same values as its neighbour, and small
// enough for Go's copy to use plain stores for that many elements, like a program
// that computes them: string instructions and non-temporal stores would
// leave the caches in another state.
const period = 251

// value returns element i of a rank's input. Sums and products of `together` such values
// are exact in any order.
func (e elements[T]) value(op ccl.Op, rank, i, together int) T {
	if op == ccl.Product {
		if (i+rank)%4 == 3 {
			return e.base
		}
		return e.of(1)
	}
	if apart := (together-1)/e.most + 1; rank%apart != 0 { // too many ranks for nonzero values on all
		return e.of(0)
	}
	largest := min(period/2, max(1, e.most/together-1)) // complex numbers have one more
	return e.of(((i*37+rank*101)%period - period/2) % (largest + 1))
}

// pattern returns two periods of elements, so that a period can start
// anywhere in the first.
func pattern[T any](element func(i int) T) []T {
	p := make([]T, 2*period)
	for i := range period {
		p[i] = element(i)
	}
	copy(p[period:], p[:period])
	return p
}

// reductions returns the patterns of the results: the results of a scan on each rank, of which
// the last is the reduction of all inputs. For Avg, which has no scan, only the last is
// set.
func (e elements[T]) reductions(op ccl.Op, inputs [][]T) [][]T {
	all := make([][]T, len(inputs))
	running := inputs[0]
	switch op {
	case ccl.LAnd, ccl.LOr, ccl.LXor: // a result is 0 or 1
		running = pattern(func(i int) T { return e.reduce(ccl.LOr, inputs[0][i], inputs[0][i]) })
	}
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

// fill copies a pattern to x, starting at a phase below period.
func fill[T any](x, pattern []T, phase int) {
	for lo := 0; lo < len(x); lo += period {
		copy(x[lo:], pattern[phase:phase+period])
	}
}

// differing counts the elements of x that differ from a pattern that starts at a phase.
func differing[T comparable](x, pattern []T, phase int) (n int) {
	phase %= period
	for lo := 0; lo < len(x); lo += period {
		got := x[lo:min(lo+period, len(x))]
		want := pattern[phase:][:len(got)]
		for i, v := range got {
			if v != want[i] {
				n++
			}
		}
	}
	return n
}

// read loads one element of every cache line of x, and counts those that differ from
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
