package ccltest

import (
	"math"

	"github.com/goccl/goccl/ccl"
)

// numbers says what a job's inputs are like.
type numbers uint8

const (
	exact numbers = iota // any integers; floats whose results are exact in any order
	rough                // floats whose sums and products depend on the order
	odd                  // for Min and Max: floats among which are NaN, infinities and zeros of both signs
)

// value returns element i of rank's input to a job. It differs from rank to rank,
// from element to element and from job to job.
func value[T number](j *job, rank, i int) T {
	h := mix(mix(j.salt+uint64(rank)<<32) + uint64(i))
	if !isFloat[T]() {
		return T(h)
	}
	sign := 1 - 2*float64(h>>63)
	unit := float64(h<<1>>12) / (1 << 52) // at least 0, below 1
	power := int(h % 8)
	switch {
	case j.numbers == odd && power == 0:
		return T(math.NaN())
	case j.numbers == odd && power == 1:
		return T(math.Inf(int(sign)))
	case j.numbers == odd && power < 4:
		return T(math.Copysign(0, sign))
	case j.numbers == rough && j.op == ccl.Product:
		return T(sign * (0.5 + unit))
	case j.numbers == rough:
		return T(math.Ldexp(sign*(0.5+unit), power))
	case j.op == ccl.Product:
		return T(math.Ldexp(sign, power%5-2))
	}
	return T(int(h>>8%(1<<16)) - 1<<15)
}

func isFloat[T number]() bool {
	var one T = 1
	return one/2 != 0
}

// fold is the definition of a reduction: ((x0 op x1) op x2) ..., rounded to T at
// every step.
func fold[T number](op ccl.Op, xs []T) T {
	acc := xs[0]
	for _, x := range xs[1:] {
		switch op {
		case ccl.Sum, ccl.Avg:
			acc += x
		case ccl.Product:
			acc *= x
		case ccl.Min:
			acc = min(acc, x)
		case ccl.Max:
			acc = max(acc, x)
		}
	}
	if op == ccl.Avg {
		acc /= T(len(xs))
	}
	return acc
}

// identical reports whether a and b are the same bits, but that one NaN is as
// good as another.
func identical[T number](a, b T) bool {
	if a != b {
		return a != a && b != b
	}
	return a != 0 || math.Signbit(float64(a)) == math.Signbit(float64(b))
}

// near reports whether got may come from folding xs in another order: every
// operation rounds once, and no intermediate sum is larger than that of the
// magnitudes.
func near[T number](op ccl.Op, got, want T, xs []T) bool {
	scale := 0.0
	switch op {
	case ccl.Sum, ccl.Avg:
		for _, x := range xs {
			scale += math.Abs(float64(x))
		}
	case ccl.Product:
		scale = math.Abs(float64(want))
	}
	epsilon := 0x1p-52
	if ccl.DTypeOf[T]() == ccl.Float32 {
		epsilon = 0x1p-23
	}
	return math.Abs(float64(got)-float64(want)) <= 2*float64(len(xs))*epsilon*scale
}
