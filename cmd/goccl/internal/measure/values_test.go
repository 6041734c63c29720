package measure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// A result is right in all elements or found to be wrong: a single wrong element, one
// of another call, of another rank, of a neighbouring place.
func TestPatterns(t *testing.T) {
	for _, op := range ccl.Ops() {
		p := pattern(func(i int) float32 { return value[float32](op, 3, i) })
		other := pattern(func(i int) float32 { return value[float32](op, 4, i) })
		for _, n := range []int{0, 1, 2, period - 1, period, period + 1, 1000} {
			x := make([]float32, n)
			for _, phase := range []int{0, 1, period / 2, period - 1} {
				fill(x, p, phase)
				require.Zero(t, differing(x, p, phase))
				for _, i := range []int{0, n / 2, n - 1} {
					if n > 0 {
						x[i]++
						require.Equal(t, 1, differing(x, p, phase))
						x[i]--
					}
				}
			}
		}
		// Not all elements of different calls and ranks differ, but many do.
		x := make([]float32, 1000)
		fill(x, p, 7)
		require.Greater(t, differing(x, p, 8), 300, op)
		require.Greater(t, differing(x, other, 7), 300, op)
	}
}

// Element by element, in the type itself.
func TestReduced(t *testing.T) {
	for i := range period {
		sum, least, most, product := 0.0, value[float64](ccl.Min, 0, i), value[float64](ccl.Max, 0, i), 1.0
		for r := range 5 {
			sum += value[float64](ccl.Sum, r, i)
			least = min(least, value[float64](ccl.Min, r, i))
			most = max(most, value[float64](ccl.Max, r, i))
			product *= value[float64](ccl.Product, r, i)
		}
		require.Equal(t, sum, reduced[float64](ccl.Sum, 5, i))
		require.Equal(t, sum/5, reduced[float64](ccl.Avg, 5, i))
		require.Equal(t, least, reduced[float64](ccl.Min, 5, i))
		require.Equal(t, most, reduced[float64](ccl.Max, 5, i))
		require.Equal(t, product, reduced[float64](ccl.Product, 5, i))
		require.Equal(t, int32(sum)/5, reduced[int32](ccl.Avg, 5, i), "truncates")
		require.Equal(t, uint8(int(sum)&255), reduced[uint8](ccl.Sum, 5, i), "wraps")
	}
	require.NotPanics(t, func() { reduced[uint8](ccl.Avg, 512, 0) })
}

// Reading touches every cache line once.
func TestRead(t *testing.T) {
	x := make([]float64, 8*100)
	for i := range x {
		x[i] = 1
	}
	require.EqualValues(t, 100, read(x))
	require.EqualValues(t, 101, read(append(x, 1)))
	require.EqualValues(t, 1, read([]uint8{1, 1}))
	require.Zero(t, read[int32](nil))
}
