package ddp

import (
	"math"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// gradient is the gradient of a parameter in a Reducer.
type gradient interface {
	// newPool returns the pool of buckets of this type.
	newPool(opts *Options, tree *shardTree) pool
	// setPart makes the elements from low to high-1 those that this rank updates.
	setPart(low, high int)
	// newOuter returns a parameter in an Outer, and its momentum.
	newOuter(r *Reducer, parameter int) (outerParameter, Tensor)
	// put copies the gradient to its bucket, unless it lies there.
	put()
	// putZeros puts zeros in place of the gradient.
	putZeros()
	// copyBack copies the mean of the part from the bucket, unless the gradient lies there.
	copyBack()
	// given returns a pointer to the first element of what ReadyGrad got last, or nil.
	given() any
	// largest returns the largest magnitude of the part of float64, whose squares may overflow; else
	// 0.
	largest() float64
	// sumSquares returns the sum of the squares of the part, each multiplied by a factor before.
	sumSquares(factor float64) float64
	// scale multiplies the part by one factor and then another, and rounds them after both.
	scale(first, second float64)
}

// gradientOf is a gradient of a type.
type gradientOf[T Float] struct {
	program   []T  // that Param got; nil: New makes the gradient
	isInPlace bool // program is a bucket by itself
	fresh     []T  // that ReadyGrad got last
	slot      []T  // in the bucket
	low, high int  // of the part that this rank updates
}

// beside returns the gradient if it lies beside its bucket, and is copied; otherwise nil.
func (g *gradientOf[T]) beside() []T {
	if g.fresh == nil && !g.isInPlace {
		return g.program
	}
	return g.fresh
}

func (g *gradientOf[T]) current() []T {
	if beside := g.beside(); beside != nil {
		return beside
	}
	return g.slot
}

func (g *gradientOf[T]) setPart(low, high int) { g.low, g.high = low, high }

// part returns the gradient of what this rank updates.
func (g *gradientOf[T]) part() []T { return g.current()[g.low:g.high:g.high] }

func (g *gradientOf[T]) put() { copy(g.slot, g.beside()) }

func (g *gradientOf[T]) putZeros() { clear(g.slot) }

func (g *gradientOf[T]) copyBack() {
	if g.beside() != nil {
		copy(g.part(), g.slot[g.low:g.high])
	}
}

func (g *gradientOf[T]) given() any {
	if len(g.fresh) == 0 {
		return nil
	}
	return &g.fresh[0]
}

func (g *gradientOf[T]) newPool(opts *Options, tree *shardTree) pool {
	hook, _ := opts.Hooks.of(ccl.DTypeOf[T]()).(Hook[T])
	switch {
	case hook != nil:
	case tree != nil:
		hook = newFolded[T](tree)
	case opts.Shard:
		hook = scatter[T]{}
	default:
		hook = mean[T]{}
	}
	return &poolOf[T]{hook: hook}
}

func (g *gradientOf[T]) largest() (largest float64) {
	doubles, _ := any(g.part()).([]float64)
	for _, x := range doubles {
		largest = max(largest, math.Abs(x))
	}
	return largest
}

func (g *gradientOf[T]) sumSquares(factor float64) (sum float64) {
	switch e := any(g.part()).(type) {
	case []float32:
		for _, x := range e {
			sum += (float64(x) * factor) * (float64(x) * factor)
		}

	case []float64:
		for _, x := range e {
			sum += (x * factor) * (x * factor)
		}
	case []half.Float16:
		for _, x := range e {
			sum += (float64(x.Float32()) * factor) * (float64(x.Float32()) * factor)
		}

	case []half.BFloat16:
		for _, x := range e {
			sum += (float64(x.Float32()) * factor) * (float64(x.Float32()) * factor)
		}
	}
	return sum
}

func (g *gradientOf[T]) scale(first, second float64) { scale(g.part(), first, second) }

// scale multiplies elements by one factor and then another, and rounds them after both.
func scale[T Float](elements []T, first, second float64) {
	switch e := any(elements).(type) {
	case []float32:
		for i := range e {
			e[i] = float32(float64(e[i]) * first * second)
		}

	case []float64:
		for i := range e {
			e[i] = e[i] * first * second
		}
	case []half.Float16:
		for i := range e {
			e[i] = half.NewFloat16(float32(float64(e[i].Float32()) * first * second))
		}

	case []half.BFloat16:
		for i := range e {
			e[i] = half.NewBFloat16(float32(float64(e[i].Float32()) * first * second))
		}
	}
}
