package measure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// ofAll runs a subtest for every type.
func ofAll(t *testing.T, of func(t *testing.T, d ccl.DType)) {
	for _, d := range ccl.DTypes() {
		require.Contains(t, runOf, d)
		t.Run(d.String(), func(t *testing.T) { of(t, d) })
	}
}

func TestValues(t *testing.T) {
	ofAll(t, func(t *testing.T, d ccl.DType) {
		switch d {
		case ccl.Uint8:
			testValues(t, integers[uint8]())
		case ccl.Int8:
			testValues(t, integers[int8]())
		case ccl.Uint16:
			testValues(t, integers[uint16]())
		case ccl.Int16:
			testValues(t, integers[int16]())
		case ccl.Uint32:
			testValues(t, integers[uint32]())
		case ccl.Int32:
			testValues(t, integers[int32]())
		case ccl.Uint64:
			testValues(t, integers[uint64]())
		case ccl.Int64:
			testValues(t, integers[int64]())
		case ccl.Float32:
			testValues(t, floats[float32](1<<24))
		case ccl.Float64:
			testValues(t, floats[float64](1<<53))
		case ccl.Float16:
			testValues(t, halves(half.NewFloat16, 1<<11))
		case ccl.BFloat16:
			testValues(t, halves(half.NewBFloat16, 1<<8))
		case ccl.Complex64:
			testValues(t, complexes[complex64](1<<24))
		case ccl.Complex128:
			testValues(t, complexes[complex128](1<<53))
		case ccl.Bool:
			testValues(t, bools())
		default:
			t.Fatal("a type that the test does not know")
		}
	})
}

// Every wrong element of a result is found, such as one that belongs to another call, another
// rank or a neighbouring position. The result does not depend on the order of the reduction.
func testValues[T ccl.Element](t *testing.T, e elements[T]) {
	for _, op := range ccl.Ops() {
		if op.Check(ccl.CollAllReduce, ccl.DTypeOf[T]()) != nil {
			continue
		}
		counts := []int{1, 3, 7}
		if e.most < 1<<12 { // sums of more ranks are exact only if some inputs are 0
			counts = append(counts, 64, 300)
		}
		for _, ranks := range counts {
			var inputs [][]T
			for r := range ranks {
				inputs = append(inputs, pattern(func(i int) T { return e.value(op, r, i, ranks) }))
			}
			forth := e.reductions(op, inputs)
			for r := range ranks / 2 {
				inputs[r], inputs[ranks-1-r] = inputs[ranks-1-r], inputs[r]
			}
			require.Equal(t, forth[ranks-1], e.reductions(op, inputs)[ranks-1], "%v of %d", op, ranks)
		}
		p := pattern(func(i int) T { return e.value(op, 3, i, 4) })
		other := pattern(func(i int) T { return e.value(op, 0, i, 4) })
		for _, n := range []int{0, 1, 2, period - 1, period, period + 1, 1000} {
			x := make([]T, n)
			for _, phase := range []int{0, 1, period / 2, period - 1} {
				fill(x, p, phase)
				require.Zero(t, differing(x, p, phase+3*period))
				for _, i := range []int{0, n / 2, n - 1} {
					if n > 0 {
						right := x[i]
						if x[i] = e.of(100); x[i] == right {
							x[i] = e.of(101)
						}
						require.Equal(t, 1, differing(x, p, phase))
						x[i] = right
					}
				}
			}
		}
		// Many elements differ between calls and between ranks.
		x := make([]T, 1000)
		fill(x, p, 7)
		require.Greater(t, differing(x, p, 8), 300, op)
		require.Greater(t, differing(x, other, 7), 300, op)
	}
}

// reductions equals a reduction element by element, in the type itself.
func TestReductions(t *testing.T) {
	inputs := func(op ccl.Op) (all [][]float64) {
		e := floats[float64](1 << 53)
		for r := range 5 {
			all = append(all, pattern(func(i int) float64 { return e.value(op, r, i, 5) }))
		}
		return all
	}
	e, x := floats[float64](1<<53), inputs(ccl.Sum)
	for i := range period {
		sum, least, most := 0.0, x[0][i], x[0][i]
		for r := range 5 {
			sum += x[r][i]
			least, most = min(least, x[r][i]), max(most, x[r][i])
			require.Equal(t, sum, e.reductions(ccl.Sum, x)[r][i], "a scan's")
		}
		require.Equal(t, sum/5, e.reductions(ccl.Avg, x)[4][i])
		require.Equal(t, least, e.reductions(ccl.Min, x)[4][i])
		require.Equal(t, most, e.reductions(ccl.Max, x)[4][i])
	}
	last := func(of [][]int8, op ccl.Op) int8 { return integers[int8]().reductions(op, of)[len(of)-1][0] }
	of := func(all ...int8) (patterns [][]int8) {
		for _, v := range all {
			patterns = append(patterns, pattern(func(int) int8 { return v }))
		}
		return patterns
	}
	require.EqualValues(t, -56, last(of(100, 100), ccl.Sum), "wraps")
	require.EqualValues(t, -28, last(of(100, 100), ccl.Avg))
	require.EqualValues(t, -2, last(of(-3, -2), ccl.Avg), "truncates")
	require.EqualValues(t, 16, last(of(48, 17), ccl.BAnd))
	require.EqualValues(t, 49, last(of(48, 17), ccl.BOr))
	require.EqualValues(t, 33, last(of(48, 17), ccl.BXor))
	require.EqualValues(t, 1, last(of(48, 17), ccl.LAnd))
	require.EqualValues(t, 1, last(of(48), ccl.LXor), "of one rank")
	require.EqualValues(t, 0, integers[uint8]().divide(7, 512), "more ranks than the type has numbers")
	require.Equal(t, uint64(math.MaxUint64/3), integers[uint64]().divide(math.MaxUint64, 3))
	require.Equal(t, complex64(complex(1.5, -2)), complexes[complex64](1<<24).divide(3-4i, 2))
}

// Reading touches every cache line once.
func TestRead(t *testing.T) {
	x := make([]float64, 8*100+1)
	for i := range x {
		x[i] = float64(i)
	}
	require.Equal(t, 100, read(x))
	require.Equal(t, 99, read(x[:800]))
	require.Zero(t, read([]uint8{1, 2}))
	require.Zero(t, read[int32](nil))
}
