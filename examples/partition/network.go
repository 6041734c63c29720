package main

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/examples/nn"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// network classifies images:
//
//	convolution, ReLU, convolution, ReLU    each worker has a rectangle of every image
//	repartition                             from rectangles of all images to whole images
//	dense layer, softmax                    each worker has whole images, with all features
//
// Its parameters live on the first worker.
type network[F nn.Float] struct {
	owner        *partition.Partition // of the parameters
	grid, rows   *partition.Partition // of the images, and of the features
	conv1, conv2 *conv[F]
	regroup      *primitive.Repartition[F]
	dense        *dense[F]
	features     *primitive.Tensor[F]
	dy           *primitive.Tensor[F]
}

// The channels that the convolutions compute.
const channels1, channels2 = 8, 16

// newNetwork makes a network on grid, a partition of the shape batch x 1 x height x width. Only
// workers of grid call it.
func newNetwork[F nn.Float](ctx context.Context, grid *partition.Partition, seed uint64) (*network[F], error) {
	owner, err := grid.Inclusive(ctx, []int{0})
	if err != nil {
		return nil, err
	}

	n := &network[F]{owner: owner, grid: grid}
	if n.rows, err = grid.Cartesian(ctx, grid.Size(), 1, 1, 1); err != nil {
		return nil, err
	}
	if n.conv1, err = newConv[F](ctx, owner, grid, 1, channels1, 3, seed); err != nil {
		return nil, err
	}
	if n.conv2, err = newConv[F](ctx, owner, grid, channels1, channels2, 3, seed+1); err != nil {
		return nil, err
	}

	if n.regroup, err = primitive.NewRepartition[F](ctx, grid, n.rows); err != nil {
		return nil, err
	}
	n.dense, err = newDense[F](ctx, owner, n.rows, channels2*digits.Pixels, digits.Classes, seed+2)
	return n, err
}

// forward returns the logits of this worker's part of the batch, of which x has its rectangle.
func (n *network[F]) forward(ctx context.Context, x *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	y, err := n.conv1.forward(ctx, x)
	if err != nil {
		return nil, err
	}
	nn.ReLU(y.Data())
	if y, err = n.conv2.forward(ctx, y); err != nil {
		return nil, err
	}
	nn.ReLU(y.Data())

	if n.features, err = n.regroup.Forward(ctx, n.features, y); err != nil {
		return nil, err
	}
	return n.dense.forward(ctx, n.features)
}

// backward takes the gradient by the logits. It leaves the gradients by the parameters with their
// owner.
func (n *network[F]) backward(ctx context.Context, dlogits *primitive.Tensor[F]) error {
	dfeatures, err := n.dense.backward(ctx, dlogits)
	if err != nil {
		return err
	}
	if n.dy, err = n.regroup.Adjoint(ctx, n.dy, dfeatures); err != nil {
		return err
	}

	nn.ReLUAdjoint(n.dy.Data(), n.conv2.y.Data())
	dy, err := n.conv2.backward(ctx, n.dy)
	if err != nil {
		return err
	}
	nn.ReLUAdjoint(dy.Data(), n.conv1.y.Data())
	_, err = n.conv1.backward(ctx, dy)
	return err
}

func (n *network[F]) step(rate, momentum F) {
	for _, p := range []*parameters[F]{n.conv1.params, n.conv2.params, n.dense.params} {
		p.step(rate, momentum)
	}
}

func (n *network[F]) close() error {
	return errors.Join(n.conv1.close(), n.conv2.close(), n.regroup.Close(), n.dense.params.close(),
		n.rows.Close(), n.owner.Close())
}

// dense is a fully connected layer: y = x weightsᵀ + bias, with a row for each image. Each worker
// has some of the rows, and a copy of all parameters.
type dense[F nn.Float] struct {
	params   *parameters[F]
	x, y, dx *primitive.Tensor[F]
}

func newDense[F nn.Float](ctx context.Context, owner, rows *partition.Partition, inputs, outputs int, seed uint64,
) (*dense[F], error) {
	params, err := newParameters[F](ctx, owner, rows, outputs, inputs, seed)
	return &dense[F]{params: params}, err
}

// forward returns y, which is valid until the next call.
func (l *dense[F]) forward(ctx context.Context, x *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	if err := l.params.fetch(ctx); err != nil {
		return nil, err
	}

	l.x = x
	l.y = sized(l.y, x.Shape()[0], l.params.outputs)
	for i := range l.y.Data() {
		in := x.Data()[i/l.params.outputs*l.params.weights:][:l.params.weights]
		weights, sum := l.params.row(i % l.params.outputs)
		for j, w := range weights {
			sum += w * in[j]
		}
		l.y.Data()[i] = sum
	}
	return l.y, nil
}

// backward takes the gradient by y and returns that by x, which is valid until the next call. It
// leaves the gradient by the parameters with their owner.
func (l *dense[F]) backward(ctx context.Context, dy *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	l.dx = sized(l.dx, l.x.Shape()...)
	clear(l.dx.Data())
	clear(l.params.dcopies.Data())

	for i, g := range dy.Data() {
		at := i / l.params.outputs * l.params.weights
		in, din := l.x.Data()[at:][:l.params.weights], l.dx.Data()[at:][:l.params.weights]
		weights, _ := l.params.row(i % l.params.outputs)
		dweights, dbias := l.params.drow(i % l.params.outputs)
		*dbias += g
		for j, w := range weights {
			dweights[j] += g * in[j]
			din[j] += g * w
		}
	}
	return l.dx, l.params.collect(ctx)
}

// part returns this worker's part of n things that are divided along a dimension of a partition.
func part(p *partition.Partition, dim, n int) ccl.Range {
	lo, hi := ccl.BlockRange(n, p.Index()[dim], p.Shape()[dim])
	return ccl.Range{Lo: lo, Hi: hi}
}
