// Package primitivetest tests linear operators of any author.
//
// # Model
//
// [Adjoint] is one line in a test that runs on workers; package partitiontest starts these.
//
// # Concurrency
//
// Every worker calls Adjoint in its own goroutine or process.
//
// # Failure
//
// What is wrong with an operator is reported to the test, by the worker that found it, or by the
// first worker of the world if all found it.
package primitivetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// Reporter is the part of testing.TB that Adjoint uses.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Adjoint tests an operator on random tensors: with y = F x and random x' and y',
//
//	<F x, y'> = <x, F* y'>
//
// summed over all workers. Every worker of world calls it, with an operator whose workers are in
// world and with a tensor of the shape of its part of the input, or nil if it has none. It also
// tests that neither direction changes its input, that F* y' has the shape of x, and that a second
// call, into the first's results, gives the same bits. Every other draw has tensors whose elements
// do not lie next to each other.
//
// An error of one element is found if it is more than a part in 10^5 (float32) or 10^12 (float64)
// of the norms: tests need small tensors, of some thousand elements. The method is that of Hewett
// and Grady, arXiv:2006.03108.
func Adjoint[T float32 | float64](ctx context.Context, t Reporter, world *partition.Partition, op primitive.Operator[T], x *primitive.Tensor[T]) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, uint64(world.Rank())))
	for i := range draws { // by chance, an inner product may be near 0
		if !draw(ctx, t, world, op, x, random, i%2 == 1) {
			return
		}
	}
}

// draws is the number of random tensors of a test.
const draws = 5

// draw tests an operator on one pair of random tensors. It reports whether to go on, the same on
// all workers that can still communicate.
func draw[T float32 | float64](ctx context.Context, t Reporter, world *partition.Partition, op primitive.Operator[T], x *primitive.Tensor[T], random *rand.Rand, strided bool) bool {
	t.Helper()
	sums, failed := products(ctx, op, x, random, strided)
	if failed != nil {
		t.Errorf("worker %d: %v", world.Rank(), failed)
		sums[6]++
	}
	// Also after an error, which the other workers need not have: they come here.
	if err := ccl.AllReduce(ctx, world.Communicator(), sums[:], sums[:], ccl.Sum); err != nil {
		t.Errorf("worker %d: %v", world.Rank(), err)
		return false
	}
	if sums[6] > 0 {
		return false
	}
	tolerance := 1e-12
	if _, single := any(T(0)).(float32); single {
		tolerance = 1e-5
	}

	inX, inY := sums[0], sums[1]
	scale := math.Sqrt(max(sums[2]*sums[3], sums[4]*sums[5]))
	if math.Abs(inX-inY) <= tolerance*scale+1e-300 { // not if one is not a number
		return true
	}
	if world.Rank() == 0 {
		t.Errorf("the adjoint is not the adjoint of the forward: <x, F* y'> is %v and <F x, y'> is %v, which differ by %.1e of the norms",
			inX, inY, math.Abs(inX-inY)/scale)
	}
	return false
}

// products returns <x, F* y'>, <F x, y'>, and the squares of the norms of x, F* y', F x and y', of
// this worker's parts.
func products[T float32 | float64](ctx context.Context, op primitive.Operator[T], x *primitive.Tensor[T], random *rand.Rand, strided bool) (sums [7]float64, _ error) {
	x = filled(x, random, strided)
	y, kept, err := apply(ctx, "forward", op.Forward, x, strided)
	if err != nil {
		return sums, err
	}
	seed := filled(y, random, strided)
	back, _, err := apply(ctx, "adjoint", op.Adjoint, seed, strided)
	if err != nil {
		return sums, err
	}

	switch {
	case x == nil && back.Len() > 0:
		return sums, fmt.Errorf("the adjoint's result has the shape %d, and this worker had no input", back.Shape())
	case x != nil && !slices.Equal(back.Shape(), x.Shape()):
		return sums, fmt.Errorf("the adjoint's result has the shape %d, and the input had %d", back.Shape(), x.Shape())
	}
	sums[0], sums[1] = dot(x, back), dot(kept, seed)
	sums[2], sums[3], sums[4], sums[5] = dot(x, x), dot(back, back), dot(kept, kept), dot(seed, seed)
	return sums, nil
}

// apply calls one direction of an operator twice, the second time into the first's result. kept is
// a copy of the result.
func apply[T float32 | float64](ctx context.Context, name string, f func(context.Context, *primitive.Tensor[T], *primitive.Tensor[T]) (*primitive.Tensor[T], error), in *primitive.Tensor[T], strided bool) (out, kept *primitive.Tensor[T], err error) {
	before := clone(in)
	if out, err = f(ctx, nil, in); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if out == nil {
		return nil, nil, fmt.Errorf("%s returns nil without an error", name)
	}
	kept = clone(out)
	if strided {
		out = empty[T](out.Shape(), true)
	}

	again, err := f(ctx, out, in)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s, the second time: %w", name, err)
	case again != out:
		return nil, nil, fmt.Errorf("%s does not use the tensor that it is given, of shape %d", name, out.Shape())
	case !same(again, kept):
		return nil, nil, fmt.Errorf("%s returns something else the second time", name)
	case !same(in, before):
		return nil, nil, fmt.Errorf("%s changes its input", name)
	}
	return again, kept, nil
}

// filled returns random elements in the shape of a tensor: of either sign, from 0.5 to 1, so that
// each counts.
func filled[T float32 | float64](t *primitive.Tensor[T], random *rand.Rand, strided bool) *primitive.Tensor[T] {
	if t == nil {
		return nil
	}
	values := primitive.NewTensor[T](t.Shape()...)
	for i := range values.Data() {
		values.Data()[i] = T((0.5 + random.Float64()/2) * float64(1-2*random.IntN(2)))
	}
	t = empty[T](t.Shape(), strided)
	_ = t.CopyFrom(values) // of the same shape
	return t
}

// empty returns a tensor whose elements lie next to each other or, if strided, do not: a part of a
// wider tensor.
func empty[T float32 | float64](shape []int, strided bool) *primitive.Tensor[T] {
	if !strided {
		return primitive.NewTensor[T](shape...)
	}
	wide, inside := slices.Clone(shape), make([]ccl.Range, len(shape))
	for d, extent := range shape {
		wide[d], inside[d] = extent+2, ccl.Range{Lo: 1, Hi: 1 + extent}
	}
	return primitive.NewTensor[T](wide...).Slice(inside...)
}

func clone[T float32 | float64](t *primitive.Tensor[T]) *primitive.Tensor[T] {
	if t == nil {
		return nil
	}
	c := primitive.NewTensor[T](t.Shape()...)
	_ = c.CopyFrom(t) // of the same shape
	return c
}

// same reports whether two tensors have the same shape and bits; neither or both may be nil.
func same[T float32 | float64](a, b *primitive.Tensor[T]) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.Shape(), b.Shape()) && slices.EqualFunc(clone(a).Data(), clone(b).Data(), func(x, y T) bool {
		return math.Float64bits(float64(x)) == math.Float64bits(float64(y))
	})
}

func dot[T float32 | float64](a, b *primitive.Tensor[T]) (sum float64) {
	if a.Len() == 0 {
		return 0
	}
	y := clone(b).Data()
	for i, x := range clone(a).Data() {
		sum += float64(x) * float64(y[i])
	}
	return sum
}
