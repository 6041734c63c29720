package reduce

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A format defines the values of a half's bits by a table of its magnitudes in order: zero, all
// finite ones, and in place of infinity the number that would come next. Numbers beyond the
// midpoint before it are rounded up to infinity.
type format[T float16 | bfloat16] struct{ magnitudes []float64 }

// newFormat returns the format with that many binary digits behind the point, whose least normal
// number is 2^least. Its greatest exponent is 1-least, so that infinity stands for 2^(2-least).
func newFormat[T float16 | bfloat16](digits, least int) format[T] {
	var f format[T]
	for e := range 1<<(15-digits) - 1 {
		for fraction := range 1 << digits {
			if e == 0 {
				f.magnitudes = append(f.magnitudes, math.Ldexp(float64(fraction), least-digits))
			} else {
				f.magnitudes = append(f.magnitudes, math.Ldexp(float64(1<<digits+fraction), e-1+least-digits))
			}
		}
	}
	f.magnitudes = append(f.magnitudes, math.Ldexp(1, 2-least))
	return f
}

var (
	binary16 = newFormat[float16](10, -14)
	brain16  = newFormat[bfloat16](7, -126)
)

func (f format[T]) infinity() T { return T(len(f.magnitudes) - 1) }

// leastNormal is the least normal number: the lowest bit of the exponent alone.
func (f format[T]) leastNormal() T { return f.infinity() & -f.infinity() }

// quiet is the bit that a quiet NaN has: the one below the exponent.
func (f format[T]) quiet() T { return f.leastNormal() >> 1 }

// value returns the number with the bits h.
func (f format[T]) value(h T) float64 {
	magnitude := h & 0x7fff
	x := math.NaN()
	switch {
	case magnitude < f.infinity():
		x = f.magnitudes[magnitude]
	case magnitude == f.infinity():
		x = math.Inf(1)
	}
	if h != magnitude {
		return -x
	}
	return x
}

// below returns the largest magnitude that does not exceed |x|.
func (f format[T]) below(x float64) T {
	at, exact := slices.BinarySearch(f.magnitudes[:f.infinity()], math.Abs(x))
	if !exact {
		at--
	}
	return T(at)
}

// nearest returns x rounded to nearest even.
func (f format[T]) nearest(x float64) T {
	if x != x {
		return f.infinity() + 1
	}
	low := f.below(x)
	toLow, toHigh := math.Abs(x)-f.magnitudes[low], f.magnitudes[low+1]-math.Abs(x)
	if toHigh < toLow || toHigh == toLow && low%2 == 1 {
		low++
	}
	return f.signed(low, x)
}

func (f format[T]) signed(magnitude T, x float64) T {
	if math.Signbit(x) {
		return magnitude | 0x8000
	}
	return magnitude
}

var float16s, bfloat16s = halfOracle(Float16, binary16), halfOracle(BFloat16, brain16)

func halfOracle[T float16 | bfloat16](typ Type, f format[T]) oracle[T] {
	two := f.nearest(2)
	widen := func(h T) float32 { return float32(f.value(h)) }
	narrow := func(x float32) T { return f.nearest(float64(x)) }
	o := oracle[T]{
		typ:     typ,
		sum:     func(a, b T) T { return narrow(float32s.sum(widen(a), widen(b))) },
		product: func(a, b T) T { return narrow(float32s.product(widen(a), widen(b))) },
		divide:  func(a T, by int) T { return narrow(float32s.divide(widen(a), by)) },
		scale:   func(a T, factor float64) T { return narrow(float32s.scale(widen(a), factor)) },
		of:      func(i int) T { return f.nearest(float64(i)) },
		below:   func(a, b T) bool { return rankOf(f.value(a)) < rankOf(f.value(b)) },
		many: func(op Op, all []T, ranks int) T { // held in float32, rounded once
			wide := make([]float32, 0, 16)
			for _, h := range all {
				wide = append(wide, widen(h))
			}
			return narrow(float32s.reduce(op, wide, ranks))
		},
		special: []T{f.infinity() + 1, f.infinity() | f.quiet()}, // a signalling NaN, and a quiet one
		any: func(r *rand.Rand) T {
			if r.IntN(2) == 0 { // magnitudes from 1/8 to 2, which are four exponents
				return f.signed(two-1-T(r.IntN(4*int(f.leastNormal()))), float64(r.IntN(2)*2-1))
			}
			return T(r.Uint32())
		},
	}
	for _, h := range []T{0, 1, f.leastNormal() - 1, f.leastNormal(), f.nearest(0.1), f.nearest(1), f.infinity() - 1, f.infinity()} {
		o.special = append(o.special, h, h|0x8000)
	}
	return o
}

// every returns all values of a half.
func every[T float16 | bfloat16]() buffer[T] {
	b := full(1<<16, T(0))
	for i := range b.body() {
		b.body()[i] = T(i)
	}
	return b
}

// ties returns the numbers that are hard to round: every half, every midpoint between two halves,
// up to the one above which numbers become infinity, and the neighbours of all these.
func ties[T float16 | bfloat16](f format[T]) []float32 {
	var hard []float32
	for i, low := range f.magnitudes[:f.infinity()] {
		for _, x := range []float64{low, (low + f.magnitudes[i+1]) / 2} {
			bits := math.Float32bits(float32(x))
			for near := max(bits, 1) - 1; near <= bits+1; near++ {
				hard = append(hard, math.Float32frombits(near), -math.Float32frombits(near))
			}
		}
	}
	return hard
}

func TestHalfConversions(t *testing.T) {
	t.Run("float16", func(t *testing.T) { testConversions(t, binary16, float16.widen, toFloat16) })
	t.Run("bfloat16", func(t *testing.T) { testConversions(t, brain16, bfloat16.widen, toBFloat16) })
}

func testConversions[T float16 | bfloat16](t *testing.T, f format[T], widen func(T) float32, narrow func(float32) T) {
	for _, h := range every[T]().body() {
		x := widen(h)
		if !same(x, float32(f.value(h))) {
			t.Fatalf("%#04x is %v, want %v", h, x, f.value(h))
		}
		if got := narrow(x); !isNaN(h) && got != h {
			t.Fatalf("%#04x comes back as %#04x", h, got)
		}
	}

	hard := ties(f)
	r := rand.New(rand.NewPCG(21, 22))
	for range 1 << 18 {
		hard = append(hard, math.Float32frombits(r.Uint32()))
	}
	hard = append(hard, float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32)
	for _, x := range hard {
		if got, want := narrow(x), f.nearest(float64(x)); !same(got, want) {
			t.Fatalf("%v is rounded to %#04x, want %#04x", x, got, want)
		}
	}

	// A NaN stays one, whatever its payload: all short payloads, powers of two, and each 256th other.
	for _, sign := range []uint32{0, 1 << 31} {
		for payload := uint32(1); payload < 1<<23; payload++ {
			if payload > 1<<17 && payload&0xff != 0xff && payload&(payload-1) != 0 {
				continue
			}
			bits := sign | 0x7f80_0000 | payload
			if got := narrow(math.Float32frombits(bits)); !isNaN(got) || got&f.quiet() == 0 {
				t.Fatalf("the NaN %#08x is rounded to %#04x", bits, got)
			}
		}
	}
}

// Whole reductions round correctly. Numbers that are hard to round are sums of three halves divided
// by a power of two, and float32 holds all of these exactly.
func TestHalfRounding(t *testing.T) {
	t.Run("float16", func(t *testing.T) { testRounding(t, Float16, binary16) })
	t.Run("bfloat16", func(t *testing.T) { testRounding(t, BFloat16, brain16) })
}

func testRounding[T float16 | bfloat16](t *testing.T, typ Type, f format[T]) {
	type terms [3]T
	sums, wants := map[int][]terms{}, map[int][]T{}
	for _, x := range ties(f) {
		// The sum is x*2^shift: at least 1 if shift may be so large.
		shift := 0
		for scaled := math.Abs(float64(x)); scaled < 1 && shift < 30; scaled *= 2 {
			shift++
		}

		// Take from it what a half can hold, three times.
		var sum terms
		rest := math.Ldexp(float64(x), shift)
		for k := range sum {
			sum[k] = f.signed(f.below(rest), float64(x))
			rest -= f.value(sum[k])
		}

		if rest == 0 {
			sums[shift], wants[shift] = append(sums[shift], sum), append(wants[shift], f.nearest(float64(x)))
		} else if math.Abs(float64(x)) >= 0x1p-31 {
			t.Fatalf("%v is not a sum of three", x)
		}
	}

	forEachImplementation(t, func(t *testing.T, m implementation) {
		for shift, want := range wants {
			n := len(want)
			a, b, c := full(n, T(0)), full(n, T(0)), full(n, T(0))
			for i, sum := range sums[shift] {
				a.body()[i], b.body()[i], c.body()[i] = sum[0], sum[1], sum[2]
			}
			srcs := pointers([]buffer[T]{a, b, c})
			m.many(typ, Avg, srcs[:1], srcs, n, 1<<shift, false)
			for i, got := range a.body() {
				if got != want[i] {
					t.Fatalf("the sum of %#04x / %d is rounded to %#04x, want %#04x", sums[shift][i], 1<<shift, got, want[i])
				}
			}
		}
	})
}

// Every half is an operand of every operation, on either side, and is divided. NaN becomes quiet.
func TestEveryHalf(t *testing.T) {
	t.Run("float16", func(t *testing.T) { testEvery(t, float16s, binary16) })
	t.Run("bfloat16", func(t *testing.T) { testEvery(t, bfloat16s, brain16) })
}

func testEvery[T float16 | bfloat16](t *testing.T, o oracle[T], f format[T]) {
	checkQuiet := func(t *testing.T, what any, got buffer[T]) {
		for i, got := range got.body() {
			if isNaN(T(i)) && got&f.quiet() == 0 {
				t.Fatalf("%v makes %#04x of %#04x", what, got, i)
			}
		}
	}

	forEachImplementation(t, func(t *testing.T, m implementation) {
		dst := every[T]()
		for _, op := range opsOf(o.typ) {
			for _, with := range []T{f.nearest(-0.7), 3} {
				checkPair(t, m, o, op, dst, every[T](), full(1<<16, with), "every half first")
				checkQuiet(t, op, dst)
				checkPair(t, m, o, op, dst, full(1<<16, with), every[T](), "every half second")
				checkQuiet(t, op, dst)
			}
		}
		for _, by := range []int{1, 2, 3, 64, math.MaxInt32} {
			dst := every[T]()
			checkDivide(t, m, o, dst, by)
			checkQuiet(t, "a division", dst)
		}
	})
}

// Many holds the running result in float32. Rounding at every step would lose the small terms of
// these sums, and a float16 cannot hold the large intermediate results.
func TestHalvesAreRoundedOnce(t *testing.T) {
	t.Run("float16", func(t *testing.T) { testRoundedOnce(t, Float16, binary16, 2048, 65504) })
	t.Run("bfloat16", func(t *testing.T) { testRoundedOnce(t, BFloat16, brain16, 256, 0x1.fep126) })
}

// testRoundedOnce takes coarse, the first integer x for which x+1 is not representable.
func testRoundedOnce[T float16 | bfloat16](t *testing.T, typ Type, f format[T], coarse, large float64) {
	forEachImplementation(t, func(t *testing.T, m implementation) {
		for _, c := range []struct {
			op    Op
			srcs  []float64
			ranks int
			want  float64
		}{
			{Sum, []float64{coarse, 1}, 1, coarse},
			{Sum, []float64{coarse, 1, 1}, 1, coarse + 2},
			{Sum, []float64{coarse, 1, -coarse}, 1, 1},
			{Sum, []float64{1, coarse, 1, 1, -coarse}, 1, 3},
			{Avg, []float64{coarse, 1, 1}, 2, coarse/2 + 1},
			{Avg, []float64{coarse, 1, 1}, 3, (coarse + 2) / 3},
			{Sum, []float64{large, large / 2, large / 4, -large}, 1, large/2 + large/4},
			{Avg, []float64{large, large / 2, large / 4}, 7, large / 4},
			{Product, []float64{coarse + 2, coarse + 2, 1 / coarse}, 1, (coarse + 2) * (coarse + 2) / coarse},
		} {
			const n = 91 // blocks, vectors and a tail
			var srcs []buffer[T]
			for _, x := range c.srcs {
				srcs = append(srcs, full(n, f.nearest(x)))
			}
			m.many(typ, c.op, pointers(srcs), pointers(srcs), n, c.ranks, false)
			for k := range srcs {
				for _, got := range srcs[k].body() {
					if got != f.nearest(c.want) {
						t.Fatalf("%v of %v over %d ranks is %v, want %v", c.op, c.srcs, c.ranks, f.value(got), c.want)
					}
				}
			}
		}
	})
}
