package ccltest

import (
	"encoding/binary"
	"math"

	"github.com/goccl/goccl/ccl"
)

// byHandKernel is an all-reduce through a view. Where the inputs travel with the
// synchronisation it reduces float32 itself: it starts from a rank of its choice, and
// reduces with a function of its own.
func byHandKernel(start func(*ccl.Call) int, reduce func(op ccl.Op, acc, x float32) float32) *ccl.Kernel {
	return byHand(func(c *ccl.Call, v *ccl.View) error {
		first, out := start(c), c.Out().Bytes()
		for i := 0; i < len(out); i += 4 {
			acc := at(v.Input(first%c.Size()), i)
			for d := 1; d < c.Size(); d++ {
				acc = reduce(c.Shape().Op, acc, at(v.Input((first+d)%c.Size()), i))
			}
			put(c.Out(), i, acc)
		}
		return nil
	})
}

func byHand(reduce func(c *ccl.Call, w *ccl.View) error) *ccl.Kernel {
	k := viewReduceKernel(none)
	right := k.Run
	k.Run = func(c *ccl.Call) error {
		s := c.Shape()
		if !s.Eager || s.DType != ccl.Float32 || s.Op != ccl.Sum && s.Op != ccl.Min {
			return right(c)
		}
		return c.View(func(v *ccl.View) error { return reduce(c, v) })
	}
	return k
}

func at(b ccl.Buffer, i int) float32 {
	return math.Float32frombits(binary.NativeEndian.Uint32(b.Bytes()[i:]))
}

func put(b ccl.Buffer, i int, x float32) {
	binary.NativeEndian.PutUint32(b.Bytes()[i:], math.Float32bits(x))
}

func inRankOrder(*ccl.Call) int { return 0 }

func sumOrMin(op ccl.Op, acc, x float32) float32 {
	if op == ccl.Min {
		return min(acc, x)
	}
	return acc + x
}

// onlySum does not look at the operation.
func onlySum(_ ccl.Op, acc, x float32) float32 { return acc + x }

// lessThan knows no NaN.
func lessThan(op ccl.Op, acc, x float32) float32 {
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
		return v.ReduceToAll(v.Mine())
	}
	sums := c.Scratch(c.Out().Len())
	for r := range c.Size() {
		for i := 0; i < len(sums.Bytes()); i += 4 {
			put(sums, i, at(sums, i)+at(v.Input(r), i))
		}
	}
	return c.Copy(c.Out(), sums)
}
