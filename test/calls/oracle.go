package calls

import (
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
	"github.com/goccl/goccl/internal/interleave"
)

// Kind is an element type.
type Kind struct {
	DType   ccl.DType
	IsFloat bool     // results depend on the order of operations
	Ops     []ccl.Op // all operations that the type has, a user-defined one last
	attempt func(c *Call, rank int, isOrdered bool) Attempt
}

// OpsFor returns the operations that a collective has on the type: a scan has no Avg.
func (k *Kind) OpsFor(coll ccl.Collective) []ccl.Op {
	return slices.DeleteFunc(slices.Clone(k.Ops), func(op ccl.Op) bool { return op == ccl.Avg && coll.Traits().Scans })
}

// Kinds lists the element types, in an order in which neighbours differ much. No other code
// lists them: whatever else depends on the type of elements asks their oracle.
var Kinds = []Kind{
	kindOf(float32s),
	kindOf(int64s),
	kindOf(integers[uint8]()),
	kindOf(float64s),
	kindOf(int32s),
	kindOf(floats(0x1p-7, 1<<3, half.BFloat16.Float32, half.NewBFloat16)),
	kindOf(integers[uint32]()),
	kindOf(bools()),
	kindOf(complexes(0x1p-23, func(x complex64) (float32, float32) { return real(x), imag(x) }, func(re, im float32) complex64 { return complex(re, im) })),
	kindOf(integers[int8]()),
	kindOf(floats(0x1p-10, 1<<6, half.Float16.Float32, half.NewFloat16)),
	kindOf(integers[uint64]()),
	kindOf(complexes(0x1p-52, func(x complex128) (float64, float64) { return real(x), imag(x) }, func(re, im float64) complex128 { return complex(re, im) })),
	kindOf(integers[int16]()),
	kindOf(integers[uint16]()),
}

var (
	int32s   = integers[int32]()
	int64s   = integers[int64]()
	float32s = floats(0x1p-23, 1<<16, func(x float32) float32 { return x }, func(x float32) float32 { return x })
	float64s = floats(0x1p-52, 1<<16, func(x float64) float64 { return x }, func(x float64) float64 { return x })
)

// Premul is the only PremulSum that is tried.
var Premul = ccl.PremulSum(factor)

const factor = 3

func kindOf[T ccl.Element](o *oracle[T]) Kind {
	d := ccl.DTypeOf[T]()
	if o.userStep == nil {
		o.userStep = func(a, b T) T { return o.step(ccl.Sum, a, b) }
	}
	o.user = ccl.NewOp(fmt.Sprintf("calls: a user-defined operation on %v", d), o.float, func(dst, a, b []T) {
		for i := range dst {
			dst[i] = o.userStep(a[i], b[i])
		}
	})
	ops := slices.DeleteFunc(append(ccl.Ops(), Premul), func(op ccl.Op) bool { return op.Check(ccl.CollAllReduce, d) != nil })
	return Kind{
		DType: d, IsFloat: o.float, Ops: append(ops, o.user),
		attempt: func(c *Call, rank int, isOrdered bool) Attempt { return newAttempt(o, c, rank, isOrdered) },
	}
}

// KindOf returns the kind of a type.
func KindOf(d ccl.DType) *Kind {
	return &Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.DType == d })]
}

// oracle defines the arithmetic on a type's elements: Go has none for some types, and
// not the same for all others.
type oracle[T ccl.Element] struct {
	float bool
	// value returns element i of rank's input to a call. It differs between ranks, elements
	// and calls.
	value func(c *Call, rank, i int) T
	// of returns the small number i.
	of func(i int) T
	// step returns a op b, rounded to T. For PremulSum that is the sum.
	step func(op ccl.Op, a, b T) T
	// wide is reduce where the engine may also round only at the end; nil: it may not.
	wide func(op ccl.Op, xs []T) T
	// wideMeans: a mean is always rounded only at the end, since its sum may be too large for T.
	wideMeans bool
	// scaled returns x times the factor of PremulSum, divided x over a number of ranks.
	scaled  func(x T) T
	divided func(x T, n int) T
	// truth returns 0 or 1, for x before a logical operation.
	truth func(x T) T
	// userStep is a op b of user, the user-defined operation; nil: a + b. On integers and bools it
	// does not commute.
	userStep func(a, b T) T
	user     ccl.Op
	// identical reports whether a and b have the same bits. All NaNs are identical.
	identical func(a, b T) bool
	// near reports whether got may be xs reduced in another order than want.
	near func(op ccl.Op, got, want T, xs []T) bool
	// bits returns a number that differs where elements differ.
	bits func(x T) uint64

	counted interleave.Once
	small   smalls
}

// reduce is the definition of a reduction: ((x0 op x1) op x2) ..., rounded to T at every
// step, or at the end alone if it is a mean and o has wideMeans.
func (o *oracle[T]) reduce(op ccl.Op, xs []T) T {
	if op == ccl.Avg && o.wideMeans {
		return o.wide(op, xs)
	}
	acc := o.operand(op, xs[0])
	for _, x := range xs[1:] {
		if op == o.user {
			acc = o.userStep(acc, x)
		} else {
			acc = o.step(op, acc, o.operand(op, x))
		}
	}

	if op == ccl.Avg {
		acc = o.divided(acc, len(xs))
	}
	return acc
}

func (o *oracle[T]) operand(op ccl.Op, x T) T {
	switch {
	case op == Premul:
		return o.scaled(x)
	case isLogical(op):
		return o.truth(x)
	}
	return x
}

func isLogical(op ccl.Op) bool { return op == ccl.LAnd || op == ccl.LOr || op == ccl.LXor }

type integer interface {
	~uint8 | ~int8 | uint16 | ~int16 | ~uint32 | ~int32 | ~uint64 | ~int64
}

func integers[T integer]() *oracle[T] {
	width := 8 * ccl.DTypeOf[T]().Size()
	low := T(1)<<(width/2) - 1 // the lower half of the bits
	return &oracle[T]{
		value: func(c *Call, rank, i int) T {
			h := c.hash(rank, i)
			switch {
			case !isLogical(c.Op):
				return T(h)
			case !c.boolOf(h):
				return 0
			}
			return T(1) << (h >> 32 % uint64(width)) // of which bitwise operations give another result
		},
		of: func(i int) T { return T(i) },
		step: func(op ccl.Op, a, b T) T {
			switch op {
			case ccl.BAnd:
				return a & b
			case ccl.BOr:
				return a | b
			case ccl.BXor:
				return a ^ b
			case ccl.LAnd, ccl.LOr, ccl.LXor:
				return only(logical(op, a != 0, b != 0), T(1))
			}
			return combined(op, a, b)
		},
		scaled: func(x T) T { return x * factor },
		truth:  func(x T) T { return only(x != 0, T(1)) },
		divided: func(x T, n int) T {
			if width <= 16 { // n may have more bits
				return T(int64(x) / int64(n))
			}
			return x / T(n)
		},
		// The halves of the bits are p and q of the function px+q, and the operation is
		// composition.
		userStep: func(a, b T) T {
			p, q := a>>(width/2)&low, a&low
			r, s := b>>(width/2)&low, b&low
			return p*r<<(width/2) | (r*q+s)&low
		},
		identical: func(a, b T) bool { return a == b },
		near:      func(_ ccl.Op, got, want T, _ []T) bool { return got == want },
		bits:      func(x T) uint64 { return uint64(x) },
	}
}

// only returns x if isTrue, and zero otherwise.
func only[T integer](isTrue bool, x T) (result T) {
	if isTrue {
		result = x
	}
	return result
}

// logical returns a op b.
func logical(op ccl.Op, a, b bool) bool {
	switch op {
	case ccl.Min, ccl.BAnd, ccl.LAnd:
		return a && b
	case ccl.Max, ccl.BOr, ccl.LOr:
		return a || b
	}
	return a != b
}

// bools are not added. The user-defined operation returns its first operand.
func bools() *oracle[bool] {
	return &oracle[bool]{
		value:     func(c *Call, rank, i int) bool { return c.boolOf(c.hash(rank, i)) },
		of:        func(i int) bool { return i%2 == 1 },
		step:      logical,
		truth:     func(x bool) bool { return x },
		userStep:  func(a, _ bool) bool { return a },
		identical: func(a, b bool) bool { return a == b },
		near:      func(_ ccl.Op, got, want bool, _ []bool) bool { return got == want },
		bits:      func(x bool) uint64 { return uint64(only[uint8](x, 1)) },
	}
}

// floats computes in float64 and rounds every result to T, which equals T's own arithmetic:
// float64 has enough more digits than the other types for the second rounding to change
// nothing (S. A. Figueroa, When is Double Rounding Innocuous?). epsilon is the distance from
// 1 to the next number. Inputs are drawn from the given number of integers around zero, so
// few that sums over all ranks need no rounding, even times the factor of PremulSum.
func floats[T ccl.Element, F float32 | float64](epsilon float64, integers int, value func(T) F, nearest func(F) T) *oracle[T] {
	to := func(x T) float64 { return float64(value(x)) }
	from := func(x float64) T { return nearest(F(x)) }
	o := &oracle[T]{
		float:   true,
		value:   func(c *Call, rank, i int) T { return from(c.floatOf(c.hash(rank, i), integers, c.isNeutral(rank, i))) },
		of:      func(i int) T { return from(float64(i)) },
		step:    func(op ccl.Op, a, b T) T { return from(combined(op, to(a), to(b))) },
		scaled:  func(x T) T { return from(to(x) * factor) },
		divided: func(x T, n int) T { return from(to(x) / float64(n)) },
		identical: func(a, b T) bool {
			x, y := to(a), to(b)
			return x == y && math.Signbit(x) == math.Signbit(y) || x != x && y != y
		},
		bits: func(x T) uint64 { return math.Float64bits(to(x)) },
	}
	// Every operation rounds once, and no intermediate sum is larger than the sum of the
	// magnitudes.
	o.near = func(op ccl.Op, got, want T, xs []T) bool {
		scale := 0.0
		switch op {
		case ccl.Min, ccl.Max:
		case ccl.Product:
			scale = math.Abs(to(want))
		default:
			for _, x := range xs {
				scale += math.Abs(to(o.operand(op, x)))
			}
		}

		return math.Abs(to(got)-to(want)) <= 2*float64(len(xs))*epsilon*scale
	}
	o.wideMeans = ccl.DTypeOf[T]() == ccl.Float16
	if ccl.DTypeOf[T]().Size() == 2 { // a view reduces in float32
		o.wide = func(op ccl.Op, xs []T) T {
			if op == o.user {
				return o.reduce(op, xs)
			}
			acc := value(o.operand(op, xs[0]))
			for _, x := range xs[1:] {
				acc = F(combined(op, float64(acc), to(o.operand(op, x))))
			}

			if op == ccl.Avg {
				acc /= F(len(xs))
			}
			return nearest(acc)
		}
	}
	return o
}

// combined returns a op b, where op is not one of bits.
func combined[T integer | float64](op ccl.Op, a, b T) T {
	switch op {
	case ccl.Product:
		return a * b
	case ccl.Min:
		return min(a, b)
	case ccl.Max:
		return max(a, b)
	}
	return a + b
}

// complexes computes with the parts of the numbers.
func complexes[T complex64 | complex128, P float32 | float64](epsilon float64, parts func(T) (re, im P), of func(re, im P) T) *oracle[T] {
	o := &oracle[T]{
		float: true,
		value: func(c *Call, rank, i int) T {
			h, isNeutral := c.hash(rank, i), c.isNeutral(rank, i)
			switch {
			case c.Op == ccl.Product && isNeutral && c.Coll.Traits().Scans: // it may be the result, whose zero has a sign
				return of(1, 0)
			case c.Op == ccl.Product && isNeutral:
				return [...]T{of(1, 0), of(0, 1), of(-1, 0), of(0, -1)}[h%4]
			case c.Op == ccl.Product && c.Numbers == Exact:
				// 2+i, rotated by right angles. Products of these have few digits, and no
				// zeros, whose signs would depend on the order.
				return [...]T{of(2, 1), of(-1, 2), of(-2, -1), of(1, -2)}[h%4]
			}
			return of(P(c.floatOf(h, 1<<16, isNeutral)), P(c.floatOf(Mix(h), 1<<16, isNeutral)))
		},
		of: func(i int) T { return of(P(i), P(i)) },
		step: func(op ccl.Op, x, y T) T {
			a, b := parts(x)
			c, d := parts(y)
			if op == ccl.Product {
				return of(P(a*c)-P(b*d), P(a*d)+P(b*c)) //nolint:unconvert // it rounds: no product is fused into a sum
			}
			return of(a+c, b+d)
		},
		scaled:  func(x T) T { a, b := parts(x); return of(a*factor, b*factor) },
		divided: func(x T, n int) T { a, b := parts(x); return of(a/P(n), b/P(n)) },
		bits: func(x T) uint64 {
			a, b := parts(x)
			return Mix(math.Float64bits(float64(a))) ^ math.Float64bits(float64(b))
		},
	}
	o.identical = func(x, y T) bool { return o.bits(x) == o.bits(y) }
	size := func(x T) float64 {
		a, b := parts(x)
		return math.Abs(float64(a)) + math.Abs(float64(b))
	}

	o.near = func(op ccl.Op, got, want T, xs []T) bool {
		scale := 0.0
		if op == ccl.Product {
			scale = 1
		}
		for _, x := range xs {
			if op == ccl.Product {
				scale *= size(x)
			} else {
				scale += size(o.operand(op, x))
			}
		}

		return size(got-want) <= 4*float64(len(xs))*epsilon*scale
	}
	return o
}

// Numbers is the kind of a call's inputs.
type Numbers uint8

// The kinds of inputs.
const (
	Exact Numbers = iota // any integers; floats whose results are exact in any order
	Rough                // floats whose sums and products depend on the order
	Odd                  // for Min and Max: floats including NaN, infinities and zeros of both signs
	Large                // for means of float16: numbers whose sum is too large for a float16
)

// hash returns the random bits of element i of rank's input.
func (c *Call) hash(rank, i int) uint64 { return Mix(Mix(c.Salt+uint64(rank)<<32) + uint64(i)) }

// boolOf makes a bool of h. Where most inputs decide a result alone, few have that value: then the
// result depends on each rank.
func (c *Call) boolOf(h uint64) bool {
	isRare := h%uint64(min(c.Ranks, exactRanks)+1) == 0
	switch c.Op {
	case ccl.Min, ccl.BAnd, ccl.LAnd:
		return !isRare
	case ccl.Max, ccl.BOr, ccl.LOr:
		return isRare
	}
	return h%2 == 0
}

// exactRanks is the largest number of ranks on which all inputs change results that are exact.
const exactRanks = 16

// isNeutral reports whether rank's input i must not change a result of floats. On more than 16
// ranks exactly 16, other ones for each element, have an input that does: then exact results need
// no rounding, and products stay in the range of their type.
func (c *Call) isNeutral(rank, i int) bool {
	if c.Ranks <= exactRanks {
		return false
	}
	first := Mix(c.Salt + uint64(i))
	return (uint64(rank)+first%uint64(c.Ranks))%uint64(c.Ranks) >= exactRanks
}

// floatOf makes a floating-point number of h. Exact ones are drawn from the given number of
// integers, or change no result if they are neutral.
func (c *Call) floatOf(h uint64, integers int, isNeutral bool) float64 {
	sign := 1 - 2*float64(h>>63)
	unit := float64(h<<1>>12) / (1 << 52) // at least 0, below 1
	power := int(h % 8)
	switch {
	case c.Numbers == Large:
		return math.Ldexp(float64(1024+h%1024), 5) // up to 65504, the largest; sums of 4096 of them are exact in float32
	case c.Numbers == Odd && power == 0:
		return math.NaN()
	case c.Numbers == Odd && power == 1:
		return math.Inf(int(sign))
	case c.Numbers == Odd && power < 4:
		return math.Copysign(0, sign)
	case c.Op == ccl.Product && isNeutral:
		return sign
	case c.Numbers == Rough && c.Op == ccl.Product:
		return sign * (0.5 + unit)
	case c.Numbers == Rough:
		return math.Ldexp(sign*(0.5+unit), power)
	case c.Op == ccl.Product: // 16 of them do not leave the range of float16
		return math.Ldexp(sign, power%3-1)
	case isNeutral:
		return 0
	}
	return float64(int(h>>8%uint64(integers)) - integers/2)
}
