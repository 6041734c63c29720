package ccl_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// affine is the composition of x -> a*x+b, which does not commute: an element holds a
// and b in its two halves.
var affine = ccl.NewOp("affine of tests", false, func(dst, f, g []uint32) {
	for i := range dst {
		a, b, c, d := f[i]>>16, f[i]&0xffff, g[i]>>16, g[i]&0xffff
		dst[i] = (a*c)<<16 | (b*c+d)&0xffff
	}
})

func affineInput(r, i int) uint32 { return uint32(2*(r+i)+1)<<16 | uint32(r*31+i) }

func compose(first, last, i int) uint32 {
	acc := affineInput(first, i)
	for r := first + 1; r <= last; r++ {
		g := affineInput(r, i)
		a, b, c, d := acc>>16, acc&0xffff, g>>16, g&0xffff
		acc = (a*c)<<16 | (b*c+d)&0xffff
	}
	return acc
}

// A user-defined operation is applied in rank order, in every reduction and in place.
func TestUserOp(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3, 5} {
			g := group(t, connect, n)
			for _, count := range []int{1, 12, 3000} {
				errs := each(n, func(r int) error {
					in := make([]uint32, count*n)
					for i := range in {
						in[i] = affineInput(r, i)
					}
					check := func(what string, got []uint32, from, first, last int) error {
						for i := range got {
							if want := compose(first, last, from+i); got[i] != want {
								return fmt.Errorf("%s of %d: element %d is %x, want %x", what, count, i, got[i], want)
							}
						}
						return nil
					}
					out := make([]uint32, count*n)
					block := make([]uint32, count)
					var atRoot []uint32
					if r == n-1 {
						atRoot = make([]uint32, count*n)
					}
					scan := append([]uint32(nil), in...)
					exscan := append([]uint32(nil), in...)
					err := errors.Join(
						ccl.AllReduce(bg, g[r], in, out, affine),
						ccl.ReduceScatter(bg, g[r], in, block, affine),
						ccl.Reduce(bg, g[r], in, atRoot, affine, n-1),
						ccl.Scan(bg, g[r], scan, scan, affine),
						ccl.ExScan(bg, g[r], exscan, exscan, affine),
						check("all-reduce", out, 0, 0, n-1),
						check("reduce-scatter", block, r*count, 0, n-1),
						check("reduce", atRoot, 0, 0, n-1),
						check("scan", scan, 0, 0, r),
					)
					if r == 0 {
						return errors.Join(err, check("exscan", exscan, 0, 0, 0)) // untouched
					}
					return errors.Join(err, check("exscan", exscan, 0, 0, r-1))
				})
				require.NoError(t, errors.Join(errs...))
			}
		}
	})
}

// A user-defined operation that does not commute is rejected for kernels that reorder, and every
// one for other types than its own.
func TestUserOpRefused(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		for _, err := range each(2, func(r int) error {
			return ccl.AllReduce(bg, g[r], []uint32{1}, []uint32{1}, affine, ccl.WithAlgorithm("ring"))
		}) {
			require.ErrorIs(t, err, ccl.ErrNotImplemented)
			require.ErrorContains(t, err, "operation affine of tests does not commute")
		}
		for _, err := range each(2, func(r int) error { return ccl.AllReduce(bg, g[r], []int32{1}, []int32{1}, affine) }) {
			require.ErrorIs(t, err, ccl.ErrNotImplemented)
			require.ErrorContains(t, err, "it was made for uint32")
		}
		allSum(t, g, 10)
	})
	require.Panics(t, func() { ccl.NewOp("affine of tests", true, func(dst, a, b []uint8) {}) })
	require.Panics(t, func() { ccl.NewOp("sum", true, func(dst, a, b []uint8) {}) })
	require.Panics(t, func() { ccl.NewOp[uint8]("nil of tests", true, nil) })
}

func TestPremulSum(t *testing.T) {
	require.Equal(t, ccl.PremulSum(0.5), ccl.PremulSum(0.5))
	require.NotEqual(t, ccl.PremulSum(0.5), ccl.PremulSum(0.25))
	require.Equal(t, "premul_sum(0.5)", ccl.PremulSum(0.5).String())
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3} {
			g := group(t, connect, n)
			ranks := float32(n * (n + 1) / 2)
			errs := each(n, func(r int) error {
				x := []float32{float32(r + 1), 8}
				i := []int64{int64(r + 1)}
				h := []half.BFloat16{half.NewBFloat16(float32(r + 1))}
				z := []complex64{complex(float32(r+1), -2)}
				err := errors.Join(
					ccl.AllReduce(bg, g[r], x, x, ccl.PremulSum(0.5)),
					ccl.AllReduce(bg, g[r], i, i, ccl.PremulSum(-3)),
					ccl.AllReduce(bg, g[r], h, h, ccl.PremulSum(0.5)),
					ccl.AllReduce(bg, g[r], z, z, ccl.PremulSum(2), ccl.WithAlgorithm("ring")),
				)
				if err == nil && (x[0] != ranks/2 || x[1] != float32(4*n) || i[0] != -3*int64(ranks) ||
					h[0].Float32() != ranks/2 || z[0] != complex(2*ranks, float32(-4*n))) {
					err = fmt.Errorf("got %v %v %v %v", x, i, h, z)
				}
				return err
			})
			require.NoError(t, errors.Join(errs...))
			for _, err := range each(n, func(r int) error { return ccl.AllReduce(bg, g[r], []uint8{1}, []uint8{1}, ccl.PremulSum(0.5)) }) {
				require.ErrorIs(t, err, ccl.ErrNotImplemented)
			}
		}
		// Ranks with different factors get an error; the tensor is unchanged.
		g := group(t, connect, 2)
		for _, err := range each(2, func(r int) error {
			x := []float32{3}
			err := ccl.AllReduce(bg, g[r], x, x, ccl.PremulSum(float64(r)))
			require.Equal(t, float32(3), x[0])
			return err
		}) {
			var m *ccl.MismatchError
			require.ErrorAs(t, err, &m)
			require.Equal(t, "op", m.Field)
			require.ErrorContains(t, err, "premul_sum(1) on rank 1")
		}
	})
}

// Every factor makes a different Op, and none equals a built-in one.
func TestPremulSumNumbers(t *testing.T) {
	seen := map[ccl.Op]float64{}
	for _, op := range append(ccl.Ops(), affine) {
		seen[op] = -1
	}
	for _, factor := range []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 5e-324, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
		op := ccl.PremulSum(factor)
		require.NotContains(t, seen, op, "%v", factor)
		seen[op] = factor
		require.Equal(t, op, ccl.PremulSum(factor))
		require.Equal(t, fmt.Sprintf("premul_sum(%v)", factor), op.String())
		require.NoError(t, op.Check(ccl.CollAllReduce, ccl.Float32), "%v", factor)
	}
	require.Equal(t, ccl.PremulSum(math.NaN()), ccl.PremulSum(math.Float64frombits(0x7ff8000000000003)))
}

// Which operations each type supports.
func TestDefined(t *testing.T) {
	for _, d := range ccl.DTypes() {
		for _, op := range ccl.Ops() {
			want := d != ccl.Bool
			switch op {
			case ccl.Min, ccl.Max:
				want = d != ccl.Complex64 && d != ccl.Complex128
			case ccl.BAnd, ccl.BOr, ccl.BXor, ccl.LAnd, ccl.LOr, ccl.LXor:
				want = d <= ccl.Int64 || d == ccl.Bool
			}
			require.Equal(t, want, op.Check(ccl.CollAllReduce, d) == nil, "%v of %v", op, d)
		}
	}
	require.Error(t, ccl.PremulSum(1).Check(ccl.CollAllReduce, ccl.Bool))
	require.Error(t, ccl.Op(77).Check(ccl.CollAllReduce, ccl.Int32))
	require.Error(t, ccl.PremulSum(1<<31).Check(ccl.CollAllReduce, ccl.Int32))
	require.NoError(t, ccl.PremulSum(-1<<31).Check(ccl.CollAllReduce, ccl.Int32))
	require.Error(t, ccl.PremulSum(-1).Check(ccl.CollAllReduce, ccl.Uint64))
}

func TestDTypeOf(t *testing.T) {
	type myInt int
	type myFloat float32
	type myBool bool
	require.Equal(t, ccl.Int64, ccl.DTypeOf[myInt]())
	require.Equal(t, ccl.Float32, ccl.DTypeOf[myFloat]())
	require.Equal(t, ccl.Uint64, ccl.DTypeOf[uintptr]())
	require.Equal(t, ccl.Uint64, ccl.DTypeOf[uint]())
	require.Equal(t, ccl.Uint16, ccl.DTypeOf[uint16]())
	require.Equal(t, ccl.Float16, ccl.DTypeOf[half.Float16]())
	require.Equal(t, ccl.BFloat16, ccl.DTypeOf[half.BFloat16]())
	require.Equal(t, ccl.Complex128, ccl.DTypeOf[complex128]())
	require.Equal(t, ccl.Bool, ccl.DTypeOf[myBool]())
	for _, d := range ccl.DTypes() {
		var again ccl.DType
		require.NoError(t, again.UnmarshalText([]byte(d.String())))
		require.Equal(t, d, again)
	}
}

// AvgOf divides by what it is given, also on one rank, and of halves after a sum in float32.
func TestAvgOf(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 3} {
			g := group(t, connect, n)
			errs := each(n, func(r int) error {
				x, long := []float64{float64(6 * (r + 1)), -12}, make([]half.Float16, 5000)
				for i := range long {
					long[i] = half.NewFloat16(40000)
				}
				if err := ccl.AllReduce(bg, g[r], x, x, ccl.AvgOf(12)); err != nil {
					return err
				}
				require.Equal(t, []float64{float64(n*(n+1)) / 4, -float64(n)}, x)
				if err := ccl.AllReduce(bg, g[r], long, long, ccl.AvgOf(4*n)); err != nil {
					return err
				}
				require.Equal(t, half.NewFloat16(10000), long[4999])
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})

	g := group(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }, 2)
	errs := each(2, func(r int) error {
		x := []int32{1}
		for _, bad := range []ccl.Op{ccl.AvgOf(0), ccl.AvgOf(-1), ccl.AvgOf(1 << 40)} {
			require.ErrorIs(t, ccl.AllReduce(bg, g[r], x, x, bad), ccl.ErrNotImplemented)
		}
		require.ErrorIs(t, ccl.Scan(bg, g[r], x, x, ccl.AvgOf(3)), ccl.ErrNotImplemented)
		var differ *ccl.MismatchError
		require.ErrorAs(t, ccl.AllReduce(bg, g[r], x, x, ccl.AvgOf(3+r)), &differ)
		require.Equal(t, "op", differ.Field)
		return nil
	})
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, "avg_of(8)", ccl.AvgOf(8).String())
}
