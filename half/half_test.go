package half_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/half"
)

// Every number of 16 bits survives the way to float32 and back.
func TestRoundTrip(t *testing.T) {
	for b := range 1 << 16 {
		f, g := half.Float16FromBits(uint16(b)), half.BFloat16FromBits(uint16(b))
		if x := f.Float32(); x == x {
			require.Equal(t, f, half.NewFloat16(x))
		} else {
			require.True(t, math.IsNaN(float64(half.NewFloat16(x).Float32())))
		}
		if x := g.Float32(); x == x {
			require.Equal(t, g, half.NewBFloat16(x))
		} else {
			require.True(t, math.IsNaN(float64(half.NewBFloat16(x).Float32())))
		}
		require.Equal(t, uint16(b), f.Bits())
		require.Equal(t, uint16(b), g.Bits())
	}
}

func TestRounding(t *testing.T) {
	require.Equal(t, uint16(0x7c00), half.NewFloat16(65520).Bits(), "too large: infinity")
	require.Equal(t, float32(65504), half.NewFloat16(65519).Float32())
	require.Equal(t, float32(1), half.NewFloat16(1+0x1p-11).Float32(), "to even")
	require.Equal(t, float32(1), half.NewBFloat16(1+0x1p-8).Float32(), "to even")
	require.Equal(t, "1.5", half.NewFloat16(1.5).String())
	require.Equal(t, "0.5", half.NewBFloat16(0.5).String())
}

// A cast shows the same memory.
func TestCasts(t *testing.T) {
	type bits uint16
	s := []bits{0x3c00, 0xc000}
	f := half.AsFloat16(s)
	require.Equal(t, []float32{1, -2}, []float32{f[0].Float32(), f[1].Float32()})
	f[0] = half.NewFloat16(-2)
	require.Equal(t, bits(0xc000), s[0])
	require.Equal(t, float32(1), half.AsBFloat16([]uint16{0x3f80})[0].Float32())
	require.Empty(t, half.AsFloat16[uint16](nil))
}

func ExampleAsBFloat16() {
	weights := []uint16{0x3f80, 0xbf00} // bits, as they were read from a file
	for _, w := range half.AsBFloat16(weights) {
		fmt.Println(w.Float32())
	}
	// Output:
	// 1
	// -0.5
}
