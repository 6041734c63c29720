package main

import (
	"context"
	"math"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/nn"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// mlp is two dense layers, Z = gelu(X A) B. Each worker has some columns of A and the same rows of
// B, so that gelu(X A) B is the sum over the workers of gelu(X Aₖ) Bₖ: nothing moves between the
// two products.
//
//	              enter                              leave
//	X on workers  ----->  X  ->  gelu(X Aₖ) Bₖ = Zₖ  ----->  Z = Z₀ + Z₁ + ...
//
// Forward, enter gives every worker all of X, and leave sums the parts of Z. Backward, their
// adjoints give every worker all of the gradient of Z, and sum the parts of the gradient of X.
type mlp[F nn.Float] struct {
	enter, leave primitive.Operator[F]
	a, b         *primitive.Tensor[F] // this worker's columns of A, and rows of B
	da, db       *primitive.Tensor[F] // their gradients
	x, h, y      *primitive.Tensor[F] // of the last forward: X, X Aₖ, gelu(X Aₖ)
}

// newMLP makes layers whose input and output are, as a whole, on every worker of p, which has one
// dimension. a and b are all of A and B, of which each worker takes its part.
func newMLP[F nn.Float](ctx context.Context, p *partition.Partition, a, b *primitive.Tensor[F]) (*mlp[F], error) {
	sum, err := primitive.NewAllSumReduce[F](ctx, p, 0)
	if err != nil {
		return nil, err
	}
	enter := spread[F]{sum}
	return divided(p, enter, reversed[F]{enter}, a, b), nil
}

// newSequenceMLP makes layers whose input and output are divided by rows: sequence parallelism.
// Each worker needs memory for its rows only, between the layers; as much data moves.
func newSequenceMLP[F nn.Float](ctx context.Context, p *partition.Partition, a, b *primitive.Tensor[F]) (*mlp[F], error) {
	enter, err := primitive.NewAllGather[F](ctx, p, 0, 0)
	if err != nil {
		return nil, err
	}
	leave, err := primitive.NewReduceScatter[F](ctx, p, 0, 0)
	if err != nil {
		return nil, err
	}
	return divided(p, enter, leave, a, b), nil
}

func divided[F nn.Float](p *partition.Partition, enter, leave primitive.Operator[F], a, b *primitive.Tensor[F]) *mlp[F] {
	hidden := part(p, a.Shape()[1])
	return &mlp[F]{enter: enter, leave: leave, a: clone(columns(a, hidden)), b: clone(rows(b, hidden))}
}

// forward returns Z, or this worker's rows of it.
func (l *mlp[F]) forward(ctx context.Context, x *primitive.Tensor[F]) (z *primitive.Tensor[F], err error) {
	if l.x, err = l.enter.Forward(ctx, nil, x); err != nil {
		return nil, err
	}
	l.h = product(l.x, l.a)
	l.y = each(l.h, gelu)
	return l.leave.Forward(ctx, nil, product(l.y, l.b))
}

// backward takes the gradient of the loss by Z and returns that by X. It leaves those by this
// worker's parts of A and B in da and db.
func (l *mlp[F]) backward(ctx context.Context, dz *primitive.Tensor[F]) (dx *primitive.Tensor[F], err error) {
	if dz, err = l.leave.Adjoint(ctx, nil, dz); err != nil {
		return nil, err
	}
	l.db = product(transposed(l.y), dz)
	dh := product(dz, transposed(l.b))
	slopes := each(l.h, geluSlope).Data()
	for i := range dh.Data() {
		dh.Data()[i] *= slopes[i]
	}
	l.da = product(transposed(l.x), dh)
	return l.enter.Adjoint(ctx, nil, product(dh, transposed(l.a)))
}

// spread is the operator f of Megatron-LM. All workers have the same tensor, and compute with it.
// Forward, nothing moves. Backward, the gradient is the sum over the workers, and all of them get
// it. It is like primitive.Broadcast of a tensor that all workers have already.
type spread[F nn.Float] struct{ sum *primitive.AllSumReduce[F] }

// Forward returns x itself.
func (o spread[F]) Forward(_ context.Context, _, x *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	return x, nil
}

// Adjoint returns the sum of all workers' y.
func (o spread[F]) Adjoint(ctx context.Context, x, y *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	return o.sum.Forward(ctx, x, y)
}

// Close implements primitive.Operator.
func (o spread[F]) Close() error { return o.sum.Close() }

// reversed is the adjoint of an operator. That of f is g of Megatron-LM: forward, the sum;
// backward, nothing moves.
type reversed[F nn.Float] struct{ of primitive.Operator[F] }

// Forward implements primitive.Operator.
func (o reversed[F]) Forward(ctx context.Context, y, x *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	return o.of.Adjoint(ctx, y, x)
}

// Adjoint implements primitive.Operator.
func (o reversed[F]) Adjoint(ctx context.Context, x, y *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	return o.of.Forward(ctx, x, y)
}

// Close implements primitive.Operator.
func (o reversed[F]) Close() error { return o.of.Close() }

// sequential computes Z and all gradients on one worker, without operators.
func sequential[F nn.Float](x, a, b, dz *primitive.Tensor[F]) (z, dx, da, db *primitive.Tensor[F]) {
	h := product(x, a)
	y := each(h, gelu)
	dh := product(dz, transposed(b))
	for i, v := range h.Data() {
		dh.Data()[i] *= geluSlope(v)
	}
	return product(y, b), product(dh, transposed(a)), product(transposed(x), dh), product(transposed(y), dz)
}

// gelu is v times the probability that a normal random number is less than v.
func gelu[F nn.Float](v F) F { return v * F(probability(float64(v))) }

// geluSlope is the derivative of gelu.
func geluSlope[F nn.Float](v F) F {
	x := float64(v)
	return F(probability(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi))
}

func probability(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }

// product returns a b. It uses the elements of dense matrices.
func product[F nn.Float](a, b *primitive.Tensor[F]) *primitive.Tensor[F] {
	m, k, n := a.Shape()[0], a.Shape()[1], b.Shape()[1]
	c := primitive.NewTensor[F](m, n)
	nn.MulAdd(c.Data(), a.Data(), b.Data(), m, k, n, k, 1)
	return c
}

func transposed[F nn.Float](a *primitive.Tensor[F]) *primitive.Tensor[F] {
	m, n := a.Shape()[0], a.Shape()[1]
	t := primitive.NewTensor[F](n, m)
	copy(t.Data(), nn.Transpose(a.Data(), n))
	return t
}

// each returns a tensor of the results of f.
func each[F nn.Float](a *primitive.Tensor[F], f func(F) F) *primitive.Tensor[F] {
	made := primitive.NewTensor[F](a.Shape()...)
	for i, v := range a.Data() {
		made.Data()[i] = f(v)
	}
	return made
}

// part returns this worker's part of n rows or columns.
func part(p *partition.Partition, n int) ccl.Range {
	lo, hi := ccl.BlockRange(n, p.Rank(), p.Size())
	return ccl.Range{Lo: lo, Hi: hi}
}

func rows[F nn.Float](a *primitive.Tensor[F], r ccl.Range) *primitive.Tensor[F] { return a.Slice(r) }

func columns[F nn.Float](a *primitive.Tensor[F], r ccl.Range) *primitive.Tensor[F] {
	return a.Slice(ccl.Range{Lo: 0, Hi: a.Shape()[0]}, r)
}

// clone returns a dense copy.
func clone[F nn.Float](a *primitive.Tensor[F]) *primitive.Tensor[F] {
	made := primitive.NewTensor[F](a.Shape()...)
	_ = made.CopyFrom(a) // of the same shape
	return made
}
