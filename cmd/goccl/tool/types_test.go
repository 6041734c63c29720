package tool

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
)

// together returns the results of two ranks with a and b, by the calls of programs.
func together[T ccl.Element](t *testing.T, op ccl.Op, a, b T) (result T, err error) {
	t.Helper()
	inputs := [2]T{a, b}
	spawned := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		group, err2 := dist.Default()
		if err2 != nil {
			return err2
		}
		x := []T{inputs[rank]}
		err2 = ccl.AllReduce(context.Background(), group.Communicator(), x, x, op)
		if rank == 0 {
			result, err = x[0], err2
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(2))
	require.NoError(t, spawned)
	return result, err
}

// gives checks the library against a sentence of docs/reference/types.md.
func gives[T ccl.Element](t *testing.T, want T, op ccl.Op, a, b T) {
	t.Helper()
	got, err := together(t, op, a, b)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// left is a user-defined operation.
var left = ccl.NewOp("tool_test_left", false, func(dst, a, _ []float32) { copy(dst, a) })

func TestTypeNotes(t *testing.T) {
	alone(t)
	gives[int8](t, -28, ccl.Avg, 100, 100) // of a sum that has wrapped
	gives[int8](t, -2, ccl.Avg, -3, -2)
	gives[uint8](t, 44, ccl.Sum, 200, 100)
	gives[int64](t, 0, ccl.Product, 1<<32, 1<<32)
	gives[int32](t, -1, ccl.BOr, -2, 1)
	gives[int16](t, 0, ccl.BAnd, -2, 1)
	gives[uint64](t, math.MaxUint64, ccl.BXor, 1, math.MaxUint64-1)
	gives[int32](t, 1, ccl.LAnd, 2, -4)
	gives[uint16](t, 0, ccl.LXor, 2, 4)
	gives(t, false, ccl.Min, true, false)
	gives(t, true, ccl.Max, false, true)

	nan, zero := math.NaN(), math.Copysign(0, -1)
	for _, op := range []ccl.Op{ccl.Sum, ccl.Avg, ccl.Product, ccl.Min, ccl.Max} {
		for _, x := range [][2]float64{{nan, 1}, {1, nan}} {
			got, err := together(t, op, x[0], x[1])
			require.NoError(t, err)
			require.True(t, math.IsNaN(got), "%v of %v", op, x)
		}
	}
	for op, negative := range map[ccl.Op]bool{ccl.Min: true, ccl.Max: false, ccl.Sum: false} {
		got, err := together(t, op, 0, zero)
		require.NoError(t, err)
		require.Zero(t, got)
		require.Equal(t, negative, math.Signbit(got), op)
	}
	got, err := together(t, ccl.Sum, zero, zero)
	require.NoError(t, err)
	require.True(t, got == 0 && math.Signbit(got))

	gives(t, half.Float16FromBits(0x7c00), ccl.Sum, half.NewFloat16(65504), half.NewFloat16(65504)) // infinity
	gives(t, half.NewFloat16(65504), ccl.Avg, half.NewFloat16(65504), half.NewFloat16(65504))       // rounded once
	gives(t, half.Float16FromBits(3), ccl.Sum, half.Float16FromBits(1), half.Float16FromBits(2))    // subnormals
	gives(t, half.NewBFloat16(256), ccl.Sum, half.NewBFloat16(256), half.NewBFloat16(1))            // to even
	gives[complex128](t, -5+10i, ccl.Product, 1+2i, 3+4i)
	gives[complex64](t, 2+3i, ccl.Avg, 1+2i, 3+4i)

	type mine int32
	gives[mine](t, 3, ccl.Max, 3, 2)
	gives(t, 7, ccl.PremulSum(0.5), 6.0, 8.0)
	gives[complex64](t, 8+12i, ccl.PremulSum(2), 1+2i, 3+4i)
	gives(t, half.NewFloat16(1), ccl.PremulSum(0.25), half.NewFloat16(1), half.NewFloat16(3))
	_, err = together[int32](t, ccl.PremulSum(0.5), 6, 8)
	require.ErrorIs(t, err, ccl.ErrNotImplemented)

	gives[float32](t, 1, left, 1, 2)
	_, err = together[float64](t, left, 1, 2)
	require.ErrorIs(t, err, ccl.ErrNotImplemented)
}

// The table has every Go type once, and missing operations are refused.
func TestTypes(t *testing.T) {
	alone(t)
	seen := map[string]bool{}
	for _, goType := range goTypes {
		require.False(t, seen[goType.name])
		seen[goType.name] = true
	}
	require.Len(t, seen, len(ccl.DTypes())+3, "uint, int and uintptr have the types of other numbers")
	for _, d := range ccl.DTypes() {
		if d == ccl.Bool {
			require.Equal(t, "-", defined(ccl.Sum, d))
			continue
		}
		require.Equal(t, "yes", defined(ccl.Sum, d))
		require.Equal(t, "not scans", defined(ccl.Avg, d))
	}
	_, err := together(t, ccl.PremulSum(1), true, true)
	require.ErrorIs(t, err, ccl.ErrNotImplemented)
	require.Equal(t, "-", defined(ccl.Max, ccl.Complex64))
	_, err = together[complex64](t, ccl.Max, 1, 2)
	require.ErrorIs(t, err, ccl.ErrNotImplemented)
	require.Equal(t, "-", defined(ccl.BXor, ccl.Float16))
	_, err = together(t, ccl.BXor, half.NewFloat16(1), half.NewFloat16(2))
	require.ErrorIs(t, err, ccl.ErrNotImplemented)
	text := printed(t, "explain", "--types")
	require.Regexp(t, `\nuint8, .*, uint64, uint, uintptr, .*  1, 1, 2, 2, 4, 4, 8, 8  yes  not scans  yes`, text)
}
