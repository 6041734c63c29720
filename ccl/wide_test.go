package ccl_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// byMessages is an all-reduce that passes sums along the ranks to the last one, which passes the
// result back.
func byMessages(c *ccl.Call) error {
	last, sum := c.Size()-1, c.Out()
	if c.Rank() > 0 {
		if err := c.RecvReduce(c.Rank()-1, sum, c.In()); err != nil {
			return err
		}
	} else if err := c.Copy(sum, c.In()); err != nil {
		return err
	}
	if c.Rank() == last {
		c.Epilogue(sum)
	} else {
		if err := c.Send(c.Rank()+1, sum); err != nil {
			return err
		}
		if err := c.Recv(c.Rank()+1, sum); err != nil {
			return err
		}
	}
	if c.Rank() > 0 {
		return c.Send(c.Rank()-1, sum)
	}
	return nil
}

// wideKernels are kernels that get means of float16 as float32: one passes messages, one opens a
// view and does not say that any rank may run it.
var wideKernels = map[string]*ccl.Kernel{
	"messages": {Run: byMessages},
	"view":     {Run: direct.Algorithm.Kernels[ccl.CollAllReduce].Run},
}

// halves returns n numbers whose sum over ranks is too large for a float16, and their mean.
func halves(rank, ranks, n int) (in, mean []half.Float16) {
	for i := range n {
		x := float32(65504 - 32*(i%100))
		in = append(in, half.NewFloat16(x-float32(32*rank)))
		mean = append(mean, half.NewFloat16((float32(ranks)*x-32*float32(ranks*(ranks-1)/2))/float32(ranks)))
	}
	return in, mean
}

// In every form of the call the mean of float16 is right although its sum is not a float16. Inputs
// do not change, and the buffers may be those of the call before.
func TestMeansOfHalves(t *testing.T) {
	type call func(c *ccl.Communicator, in []half.Float16, by ccl.CallOption) (out []half.Float16, err error)
	forms := map[string]call{
		"apart": func(c *ccl.Communicator, in []half.Float16, by ccl.CallOption) ([]half.Float16, error) {
			out := make([]half.Float16, len(in))
			return out, ccl.AllReduce(bg, c, in, out, ccl.Avg, by)
		},
		"in place": func(c *ccl.Communicator, in []half.Float16, by ccl.CallOption) ([]half.Float16, error) {
			out := append([]half.Float16(nil), in...)
			return out, ccl.AllReduce(bg, c, out, out, ccl.Avg, by)
		},
		"coalesced": func(c *ccl.Communicator, in []half.Float16, by ccl.CallOption) ([]half.Float16, error) {
			out := append([]half.Float16(nil), in...)
			third := len(out) / 3
			return out, ccl.AllReduceCoalesced(bg, c, [][]half.Float16{out[:third], out[third : 2*third], out[2*third:]}, ccl.Avg, by)
		},
		"queued": func(c *ccl.Communicator, in []half.Float16, by ccl.CallOption) ([]half.Float16, error) {
			out := make([]half.Float16, len(in))
			return out, started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, c, in, out, ccl.Avg, by, async) }).Wait(bg)
		},
		"started again": func(c *ccl.Communicator, in []half.Float16, by ccl.CallOption) ([]half.Float16, error) {
			out := make([]half.Float16, len(in))
			r := repeat(c, in, out, ccl.Avg, by)
			return out, errors.Join(r(bg).Wait(bg), r(bg).Wait(bg))
		},
	}
	everyWorld(t, func(t *testing.T, connect connector) {
		const ranks = 4
		g := join(t, connect, settings(t, ranks, patient, wideKernels))
		for _, err := range each(ranks, func(r int) error {
			for _, kernel := range []string{"messages", "view"} {
				for _, name := range []string{"apart", "in place", "coalesced", "queued", "started again"} {
					for _, n := range []int{1, 7, 300, 70000} {
						in, want := halves(r, ranks, n)
						before := slices.Clone(in)
						out, err := forms[name](g[r], in, ccl.WithAlgorithm(kernel))
						if err == nil && (!slices.Equal(out, want) || !slices.Equal(in, before)) {
							err = fmt.Errorf("%d elements: %v instead of %v; the input was %v and is %v", n, out[:1], want[:1], before[:1], in[:1])
						}
						if err != nil {
							return fmt.Errorf("%s, %s: %w", kernel, name, err)
						}
					}
				}
			}
			return nil
		}) {
			require.NoError(t, err)
		}
	})
}

// Other calls keep their rule: a sum of float16 is rounded at each rank, and a mean of bfloat16 is
// such a sum, divided.
func TestOtherHalvesAreRoundedAtEachRank(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		const ranks = 4
		g := join(t, connect, settings(t, ranks, patient, wideKernels))
		for _, err := range each(ranks, func(r int) error {
			by := ccl.WithAlgorithm("messages")
			sum := []half.Float16{half.NewFloat16(40000)}
			err := ccl.AllReduce(bg, g[r], sum, sum, ccl.Sum, by)
			mean := []half.BFloat16{half.NewBFloat16([]float32{256, 1, 1, 2}[r])} // 256+1 is rounded to 256
			err = errors.Join(err, ccl.AllReduce(bg, g[r], mean, mean, ccl.Avg, by))
			if got := sum[0].Float32(); !math.IsInf(float64(got), 1) || mean[0].Float32() != 64.5 {
				err = errors.Join(err, fmt.Errorf("the sum is %v, and the mean %v", got, mean[0]))
			}
			return err
		}) {
			require.NoError(t, err)
		}
	})
}

// Ranks that bring float16 and float32 to a mean disagree about the type, as in other calls, and
// the error has the caller's type and number of elements.
func TestMismatchOfHalves(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := join(t, connect, settings(t, 2, patient, wideKernels))
		errs := each(2, func(r int) error {
			by := ccl.WithAlgorithm("messages")
			if r == 0 {
				return ccl.AllReduce(bg, g[0], make([]half.Float16, 5), make([]half.Float16, 5), ccl.Avg, by)
			}
			return ccl.AllReduce(bg, g[1], make([]float32, 5), make([]float32, 5), ccl.Avg, by)
		})
		for _, err := range errs {
			mismatch, ok := errors.AsType[*ccl.MismatchError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, "dtype", mismatch.Field)
		}
		require.ErrorContains(t, errs[0], "all_reduce of 5 float16 by messages")
	})
}
