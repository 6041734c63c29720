package ccltest

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/goccl/goccl/ccl"
)

// byHandKernel is an all-reduce through a view. Where the inputs travel with the
// synchronisation it reduces float32 and float64 itself: it starts from a rank of its choice, and
// reduces with a function of its own. A sum of two float32 in float64, rounded to float32, is
// their sum in float32.
func byHandKernel(start func(*ccl.Call) int, reduce func(op ccl.Op, acc, x float64) float64) *ccl.Kernel {
	return byHand(func(c *ccl.Call, v *ccl.View) error {
		first, out := start(c), c.Out()
		for i := range out.Len() {
			acc := at(v.Input(first%c.Size()), i)
			for d := 1; d < c.Size(); d++ {
				acc = reduce(c.Shape().Op, acc, at(v.Input((first+d)%c.Size()), i))
				if !double(out) {
					acc = float64(float32(acc))
				}
			}
			put(out, i, acc)
		}
		return nil
	})
}

func byHand(reduce func(c *ccl.Call, w *ccl.View) error) *ccl.Kernel {
	k := viewReduceKernel(none)
	right := k.Run
	k.Run = func(c *ccl.Call) error {
		s := c.Shape()
		if !s.Eager || s.DType != ccl.Float32 && s.DType != ccl.Float64 || s.Op != ccl.Sum && s.Op != ccl.Min {
			return right(c)
		}
		return c.View(func(v *ccl.View) error { return reduce(c, v) })
	}
	return k
}

// double reports whether b holds float64, not float32.
func double(b ccl.Buffer) bool { return len(b.Bytes()) == 8*b.Len() }

func at(b ccl.Buffer, i int) float64 {
	if double(b) {
		return math.Float64frombits(binary.NativeEndian.Uint64(b.Bytes()[8*i:]))
	}
	return float64(math.Float32frombits(binary.NativeEndian.Uint32(b.Bytes()[4*i:])))
}

func put(b ccl.Buffer, i int, x float64) {
	if double(b) {
		binary.NativeEndian.PutUint64(b.Bytes()[8*i:], math.Float64bits(x))
		return
	}
	binary.NativeEndian.PutUint32(b.Bytes()[4*i:], math.Float32bits(float32(x)))
}

func inRankOrder(*ccl.Call) int { return 0 }

func sumOrMin(op ccl.Op, acc, x float64) float64 {
	if op == ccl.Min {
		return min(acc, x)
	}
	return acc + x
}

// onlySum does not look at the operation.
func onlySum(_ ccl.Op, acc, x float64) float64 { return acc + x }

// lessThan knows no NaN.
func lessThan(op ccl.Op, acc, x float64) float64 {
	switch {
	case op == ccl.Sum:
		return acc + x
	case x < acc:
		return x
	}
	return acc
}

// sumsInScratch adds to scratch memory that it takes for zeroed.
func sumsInScratch(c *ccl.Call, v *ccl.View) error {
	if c.Shape().Op == ccl.Min {
		return v.ReduceToAll(v.Part())
	}
	sums := c.Scratch(c.Out().Len())
	for r := range c.Size() {
		for i := range sums.Len() {
			put(sums, i, at(sums, i)+at(v.Input(r), i))
		}
	}
	return c.Copy(c.Out(), sums)
}

// sumsHalves reduces means of short inputs pair by pair, which rounds the sums of halves.
func sumsHalves() *ccl.Kernel {
	k := viewReduceKernel(none)
	right := k.Run
	k.Run = func(c *ccl.Call) error {
		if s := c.Shape(); !s.Eager || s.Op != ccl.Avg {
			return right(c)
		}
		return c.View(func(v *ccl.View) error {
			sums := c.Scratch(c.Out().Len())
			err := c.Copy(sums, v.Input(0))
			for r := 1; r < c.Size() && err == nil; r++ {
				err = c.Reduce(sums, sums, v.Input(r))
			}
			c.Epilogue(sums)
			return errors.Join(err, c.Copy(c.Out(), sums))
		})
	}
	return k
}
