package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goccl/goccl/examples/nn"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
	"github.com/goccl/goccl/primitive"
	"github.com/goccl/goccl/primitive/primitivetest"
)

const inputs, outputs = 3, 2 // channels

// layouts are partitions of batch x 1 x height x width, with kernels and images.
var layouts = []struct {
	grid   []int
	k      int
	images []int // batch, height, width
}{
	{[]int{1, 1, 1, 1}, 3, []int{2, 7, 9}},
	{[]int{1, 1, 2, 2}, 3, []int{2, 8, 8}},
	{[]int{1, 1, 2, 2}, 3, []int{2, 7, 9}},
	{[]int{1, 1, 2, 2}, 5, []int{1, 7, 9}},
	{[]int{1, 1, 2, 2}, 1, []int{1, 3, 2}},
	{[]int{1, 1, 1, 3}, 3, []int{2, 7, 9}},
	{[]int{1, 1, 3, 1}, 3, []int{2, 7, 9}},
	{[]int{1, 1, 3, 1}, 5, []int{2, 7, 2}},
	{[]int{1, 1, 2, 3}, 3, []int{1, 5, 4}},
	{[]int{2, 1, 1, 2}, 3, []int{3, 4, 5}},
}

// The layer on many workers is the layer on one: its result and all gradients.
func TestConvEqualsSequential(t *testing.T) {
	for _, l := range layouts {
		t.Run(fmt.Sprintf("%v/%v/%d", l.grid, l.images, l.k), func(t *testing.T) {
			partitiontest.Workers(t, size(l.grid), func(ctx context.Context, world *partition.Partition) error {
				return errors.Join(equalsSequential[float64](ctx, world, l.grid, l.k, l.images, 1e-12),
					equalsSequential[float32](ctx, world, l.grid, l.k, l.images, 1e-5))
			})
		})
	}
}

func equalsSequential[F nn.Float](ctx context.Context, world *partition.Partition, shape []int, k int, images []int,
	tolerance float64,
) error {
	first, err := world.Inclusive(ctx, []int{0})
	if err != nil {
		return err
	}
	alone, err := first.Cartesian(ctx, 1, 1, 1, 1)
	if err != nil {
		return err
	}
	grid, err := world.Cartesian(ctx, shape...)
	if err != nil {
		return err
	}
	divide, err := primitive.NewRepartition[F](ctx, alone, grid) // the adjoint collects
	if err != nil {
		return err
	}
	layer, err := newConv[F](ctx, first, grid, inputs, outputs, k, 1)
	if err != nil {
		return err
	}

	// Worker 0 has the images, and the layer of one worker.
	var sequential *conv[F]
	var x, dy, y, dx *primitive.Tensor[F]
	if alone.Active() {
		if sequential, err = newConv[F](ctx, first, alone, inputs, outputs, k, 1); err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(1, 2))
		x = noise[F](random, images[0], inputs, images[1], images[2])
		dy = noise[F](random, images[0], outputs, images[1], images[2])
		params := noise[F](random, sequential.params.values.Shape()...) // with biases
		if err := errors.Join(sequential.params.values.CopyFrom(params), layer.params.values.CopyFrom(params)); err != nil {
			return err
		}
		if y, err = sequential.forward(ctx, x); err != nil {
			return err
		}
		if dx, err = sequential.backward(ctx, dy); err != nil {
			return err
		}
	}

	mine, err := divide.Forward(ctx, nil, x)
	if err != nil {
		return err
	}
	result, err := layer.forward(ctx, mine)
	if err != nil {
		return err
	}
	wholeY, err := divide.Adjoint(ctx, nil, result)
	if err != nil {
		return err
	}
	grads, err := divide.Forward(ctx, nil, dy)
	if err != nil {
		return err
	}
	back, err := layer.backward(ctx, grads)
	if err != nil {
		return err
	}
	wholeDX, err := divide.Adjoint(ctx, nil, back)
	if err != nil {
		return err
	}
	if alone.Active() {
		err = errors.Join(near("y", wholeY, y, tolerance), near("dx", wholeDX, dx, tolerance),
			near("the parameters' gradient", layer.params.grads, sequential.params.grads, tolerance), sequential.close())
	}
	return errors.Join(err, layer.close(), divide.Close())
}

// The layer on one worker is the definition of a convolution, and of its gradients.
func TestConvEqualsDefinition(t *testing.T) {
	for _, k := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			partitiontest.Workers(t, 1, func(ctx context.Context, world *partition.Partition) error {
				grid, err := world.Cartesian(ctx, 1, 1, 1, 1)
				if err != nil {
					return err
				}
				layer, err := newConv[float64](ctx, world, grid, inputs, outputs, k, 1)
				if err != nil {
					return err
				}
				random := rand.New(rand.NewPCG(1, 2))
				x, dy := noise[float64](random, 2, inputs, 7, 9), noise[float64](random, 2, outputs, 7, 9)
				params := layer.params.values
				if err := params.CopyFrom(noise[float64](random, params.Shape()...)); err != nil {
					return err
				}
				y, err := layer.forward(ctx, x)
				if err != nil {
					return err
				}
				dx, err := layer.backward(ctx, dy)
				if err != nil {
					return err
				}
				wantY, wantDX, wantParams := define(x, dy, params, k)
				return errors.Join(near("y", y, wantY, 1e-12), near("dx", dx, wantDX, 1e-12),
					near("the parameters' gradient", layer.params.grads, wantParams, 1e-12))
			})
		})
	}
}

// define computes a convolution and its gradients, by their definition.
func define(x, dy, params *primitive.Tensor[float64], k int) (y, dx, dparams *primitive.Tensor[float64]) {
	y = primitive.NewTensor[float64](dy.Shape()...)
	dx = primitive.NewTensor[float64](x.Shape()...)
	dparams = primitive.NewTensor[float64](params.Shape()...)
	add := func(t *primitive.Tensor[float64], v float64, index ...int) { t.Set(t.At(index...)+v, index...) }
	height, width := x.Shape()[2], x.Shape()[3]
	for n := range x.Shape()[0] {
		for o := range outputs {
			for i := range height {
				for j := range width {
					g := dy.At(n, o, i, j)
					add(y, params.At(o, inputs*k*k), n, o, i, j)
					add(dparams, g, o, inputs*k*k)
					for c := range inputs {
						for a := range k {
							for b := range k {
								row, column, w := i+a-k/2, j+b-k/2, (c*k+a)*k+b
								if row < 0 || row >= height || column < 0 || column >= width {
									continue
								}
								add(y, params.At(o, w)*x.At(n, c, row, column), n, o, i, j)
								add(dx, params.At(o, w)*g, n, c, row, column)
								add(dparams, x.At(n, c, row, column)*g, o, w)
							}
						}
					}
				}
			}
		}
	}
	return y, dx, dparams
}

// The layer is linear in the images, without biases, and in the parameters. What it moves backward is
// the adjoint of what it moves forward, in both.
func TestConvAdjoint(t *testing.T) {
	for _, l := range layouts {
		t.Run(fmt.Sprintf("%v/%v/%d", l.grid, l.images, l.k), func(t *testing.T) {
			partitiontest.Workers(t, size(l.grid), func(ctx context.Context, world *partition.Partition) error {
				owner, err := world.Inclusive(ctx, []int{world.Size() - 1}) // any worker
				if err != nil {
					return err
				}
				grid, err := world.Cartesian(ctx, l.grid...)
				if err != nil {
					return err
				}
				layer, err := newConv[float64](ctx, owner, grid, inputs, outputs, l.k, 1)
				if err != nil {
					return err
				}
				shape := []int{l.images[0], inputs, l.images[1], l.images[2]}
				for d := range shape {
					if d != 1 {
						mine := part(grid, d, shape[d])
						shape[d] = mine.Hi - mine.Lo
					}
				}
				x := noise[float64](rand.New(rand.NewPCG(3, uint64(world.Rank()))), shape...)
				primitivetest.Adjoint(ctx, t, world, inImages[float64]{layer}, x)
				primitivetest.Adjoint(ctx, t, world, inParameters[float64]{layer, x}, layer.params.values)
				return layer.close()
			})
		})
	}
}

// inImages is a layer as an operator on images. Its biases are 0.
type inImages[F nn.Float] struct{ layer *conv[F] }

func (o inImages[F]) Forward(ctx context.Context, y, x *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	made, err := o.layer.forward(ctx, x)
	return copied(y, made, err)
}

func (o inImages[F]) Adjoint(ctx context.Context, x, y *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	made, err := o.layer.backward(ctx, together(y))
	return copied(x, made, err)
}

func (o inImages[F]) Close() error { return o.layer.close() }

// inParameters is a layer as an operator on its parameters, for the images x.
type inParameters[F nn.Float] struct {
	layer *conv[F]
	x     *primitive.Tensor[F]
}

func (o inParameters[F]) Forward(ctx context.Context, y, params *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	o.layer.params.values = params
	made, err := o.layer.forward(ctx, o.x)
	return copied(y, made, err)
}

func (o inParameters[F]) Adjoint(ctx context.Context, params, y *primitive.Tensor[F]) (*primitive.Tensor[F], error) {
	_, err := o.layer.backward(ctx, together(y))
	return copied(params, o.layer.params.grads, err)
}

func (o inParameters[F]) Close() error { return o.layer.close() }

// together returns a copy whose elements lie next to each other, as a layer takes gradients.
func together[F nn.Float](t *primitive.Tensor[F]) *primitive.Tensor[F] {
	d := primitive.NewTensor[F](t.Shape()...)
	_ = d.CopyFrom(t) // of the same shape
	return d
}

// copied copies a result of a layer, which the layer uses again, to a tensor.
func copied[F nn.Float](to, made *primitive.Tensor[F], err error) (*primitive.Tensor[F], error) {
	if err != nil {
		return nil, err
	}
	to = sized(to, made.Shape()...)
	return to, to.CopyFrom(made)
}

// A layer refuses partitions that divide the channels, and kernels without a middle.
func TestConvMistakes(t *testing.T) {
	partitiontest.Workers(t, 2, func(ctx context.Context, world *partition.Partition) error {
		byChannel, err := world.Cartesian(ctx, 1, 2, 1, 1)
		if err != nil {
			return err
		}
		grid, err := world.Cartesian(ctx, 1, 1, 1, 2)
		if err != nil {
			return err
		}
		_, line := newConv[float64](ctx, world, world, inputs, outputs, 3, 1)
		_, channel := newConv[float64](ctx, world, byChannel, inputs, outputs, 3, 1)
		_, even := newConv[float64](ctx, world, grid, inputs, outputs, 2, 1)
		if line == nil || channel == nil || even == nil {
			return fmt.Errorf("no error: %v, %v, %v", line, channel, even)
		}
		return nil
	})
}

func size(shape []int) int {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	return n
}

// noise returns a tensor of random numbers.
func noise[F nn.Float](random *rand.Rand, shape ...int) *primitive.Tensor[F] {
	t := primitive.NewTensor[F](shape...)
	for i := range t.Data() {
		t.Data()[i] = F(random.NormFloat64())
	}
	return t
}

// near returns an error unless tensors are equal, except for a part of their largest value.
func near[F nn.Float](what string, got, want *primitive.Tensor[F], tolerance float64) error {
	if !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("%s has the shape %v, want %v", what, got.Shape(), want.Shape())
	}
	var farthest, largest float64
	for i, v := range want.Data() {
		farthest = max(farthest, math.Abs(float64(got.Data()[i]-v)))
		largest = max(largest, math.Abs(float64(v)))
	}
	if !(farthest <= tolerance*largest) || largest == 0 {
		return fmt.Errorf("%s differs by %g, and its largest value is %g", what, farthest, largest)
	}
	return nil
}
