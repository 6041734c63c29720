package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/nn"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// conv is a convolutional layer on images that are divided among workers. With zeros around an
// image,
//
//	y[n, o, i, j] = bias[o] + sum over c, a, b of  weight[o, c, a, b] * x[n, c, i+a-k/2, j+b-k/2]
//
// Each worker has a rectangle of every image, and computes the same rectangle of the result. It
// needs k/2 more pixels on each side: ghost cells, which hold copies of its neighbours' pixels,
// and zeros at the edges of the image. As operators on what all workers have, without the bias,
//
//	forward    y  = K H P x       P pads, H exchanges ghost cells, K is this worker's convolution
//	backward   dx = P* H* K* dy   K* is its adjoint, H* adds gradients of ghost cells, P* crops
//
// P and K are loops; only H communicates. The gradient of the weights is the sum over all workers:
// see parameters.
type conv[F nn.Float] struct {
	inputs, k   int // channels, and extent of the kernel
	params      *parameters[F]
	exchange    *primitive.HaloExchange[F]
	padded, y   *primitive.Tensor[F]
	dpadded, dx *primitive.Tensor[F]
}

// newConv makes a layer with kernels of k x k on images that are divided as grid, a partition of
// the shape batch x 1 x height x width.
func newConv[F nn.Float](ctx context.Context, owner, grid *partition.Partition, inputs, outputs, k int, seed uint64,
) (*conv[F], error) {
	if shape := grid.Shape(); len(shape) != 4 || shape[1] != 1 || k%2 != 1 {
		return nil, fmt.Errorf("a convolution of %d x %d on a partition of the shape %v: want an odd extent, and "+
			"batch x 1 x height x width", k, k, shape)
	}

	params, err := newParameters[F](ctx, owner, grid, outputs, inputs*k*k, seed)
	if err != nil {
		return nil, err
	}
	none, ghosts := primitive.Halo{}, primitive.Halo{Left: k / 2, Right: k / 2}
	exchange, err := primitive.NewHaloExchange[F](ctx, grid, none, none, ghosts, ghosts)
	if err != nil {
		return nil, errors.Join(err, params.close())
	}
	return &conv[F]{inputs: inputs, k: k, params: params, exchange: exchange}, nil
}

// forward returns y, which is valid until the next call.
func (l *conv[F]) forward(ctx context.Context, x *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	if err := l.params.fetch(ctx); err != nil {
		return nil, err
	}
	shape := x.Shape() // images, channels, height, width
	height, width := shape[2], shape[3]
	l.padded = sized(l.padded, shape[0], shape[1], height+l.k-1, width+l.k-1)
	if err := l.inner(l.padded).CopyFrom(x); err != nil {
		return nil, err
	}
	// In place. Ghost cells at the edges of the image hold zeros since they were made.
	if _, err := l.exchange.Forward(ctx, l.padded, l.padded); err != nil {
		return nil, err
	}
	l.y = sized(l.y, shape[0], l.params.outputs, height, width)
	l.convolve(shape[0], height, width)
	return l.y, nil
}

// backward takes the gradient of the loss by y, whose elements lie next to each other, and returns
// that by x, which is valid until the next call. It leaves the gradient by the parameters with
// their owner.
func (l *conv[F]) backward(ctx context.Context, dy *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	shape := dy.Shape()
	l.dpadded = sized(l.dpadded, l.padded.Shape()...)
	l.convolveAdjoint(dy.Data(), shape[0], shape[2], shape[3])
	if err := l.params.collect(ctx); err != nil {
		return nil, err
	}
	if _, err := l.exchange.Adjoint(ctx, l.dpadded, l.dpadded); err != nil {
		return nil, err
	}
	l.dx = sized(l.dx, shape[0], l.inputs, shape[2], shape[3])
	return l.dx, l.dx.CopyFrom(l.inner(l.dpadded))
}

// inner returns a padded tensor without its ghost cells: this worker's own pixels.
func (l *conv[F]) inner(padded *primitive.Tensor[F]) *primitive.Tensor[F] {
	shape := padded.Shape()
	height, width := shape[2], shape[3]
	return padded.Slice(ccl.Range{Hi: shape[0]}, ccl.Range{Hi: shape[1]},
		ccl.Range{Lo: l.k / 2, Hi: height - l.k/2}, ccl.Range{Lo: l.k / 2, Hi: width - l.k/2})
}

// convolve computes y of the padded images.
func (l *conv[F]) convolve(images, height, width int) {
	x, y := l.padded.Data(), l.y.Data()
	high, wide := height+l.k-1, width+l.k-1
	for n := range images {
		for o := range l.params.outputs {
			weights, bias := l.params.row(o)
			plane := y[(n*l.params.outputs+o)*height*width:][:height*width]
			for i := range plane {
				plane[i] = bias
			}
			for t, w := range weights { // channel, row and column of the kernel
				c, a, b := t/(l.k*l.k), t/l.k%l.k, t%l.k
				from := x[(n*l.inputs+c)*high*wide:][:high*wide]
				for i := range height {
					row := from[(i+a)*wide+b:][:width]
					to := plane[i*width:][:len(row)]
					for j, v := range row {
						to[j] += w * v
					}
				}
			}
		}
	}
}

// convolveAdjoint computes the gradients by the padded images and by this worker's copy of the
// parameters.
func (l *conv[F]) convolveAdjoint(dy []F, images, height, width int) {
	x, dx := l.padded.Data(), l.dpadded.Data()
	high, wide := height+l.k-1, width+l.k-1
	clear(dx)
	clear(l.params.dcopies.Data())

	for n := range images {
		for o := range l.params.outputs {
			weights, _ := l.params.row(o)
			dweights, dbias := l.params.drow(o)
			plane := dy[(n*l.params.outputs+o)*height*width:][:height*width]
			for _, g := range plane {
				*dbias += g
			}

			for t, w := range weights {
				c, a, b := t/(l.k*l.k), t/l.k%l.k, t%l.k
				from := x[(n*l.inputs+c)*high*wide:][:high*wide]
				to := dx[(n*l.inputs+c)*high*wide:][:high*wide]

				var sum F
				for i := range height {
					grads := plane[i*width:][:width]
					row := from[(i+a)*wide+b:][:len(grads)]
					drow := to[(i+a)*wide+b:][:len(grads)]
					for j, g := range grads {
						sum += g * row[j]
						drow[j] += g * w
					}
				}

				dweights[t] += sum
			}
		}
	}
}

func (l *conv[F]) close() error { return errors.Join(l.params.close(), l.exchange.Close()) }

// sized returns t if it has the shape, and a new tensor of zeros otherwise.
func sized[F nn.Float](t *primitive.Tensor[F], shape ...int) *primitive.Tensor[F] {
	if t != nil && slices.Equal(t.Shape(), shape) {
		return t
	}
	return primitive.NewTensor[F](shape...)
}
