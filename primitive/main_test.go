package primitive_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
	"github.com/goccl/goccl/primitive"
	"github.com/goccl/goccl/primitive/primitivetest"
)

var bg = context.Background()

func everyWorld(t *testing.T, workers int, f func(world *partition.Partition) error) {
	t.Helper()
	partitiontest.Workers(t, workers, func(_ context.Context, world *partition.Partition) error { return f(world) })
}

// check returns an error if a value is not what a test wants.
func check(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s is %v, want %v", what, got, want)
}

// team is a partition of some workers of the world.
type team struct {
	workers []int
	shape   []int
}

// all is the team of the first workers, as many as the shape has places.
func all(shape ...int) team {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	return team{span(0, n), shape}
}

func (l team) make(world *partition.Partition) (*partition.Partition, error) {
	p, err := world.Inclusive(bg, l.workers)
	if err != nil {
		return nil, err
	}
	return p.Cartesian(bg, l.shape...)
}

// both makes the partitions of two teams.
func both(world *partition.Partition, x, y team) (px, py *partition.Partition, err error) {
	if px, err = x.make(world); err != nil {
		return nil, nil, err
	}
	py, err = y.make(world)
	return px, py, err
}

// span returns from to end-1.
func span(from, end int) (all []int) {
	for i := from; i < end; i++ {
		all = append(all, i)
	}
	return all
}

// onlyIf returns a tensor of zeros of the shape on active workers, and nil on others.
func onlyIf[T real](active bool, shape ...int) *primitive.Tensor[T] {
	if !active {
		return nil
	}
	return primitive.NewTensor[T](shape...)
}

// numbered returns a tensor whose elements are the row-major places in the whole of a box of it.
func numbered[T real](whole []int, box []ccl.Range) *primitive.Tensor[T] {
	shape := make([]int, len(box))
	for d, r := range box {
		shape[d] = r.Hi - r.Lo
	}
	t := primitive.NewTensor[T](shape...)
	each(shape, func(index []int) {
		at := 0
		for d, i := range index {
			at = at*whole[d] + box[d].Lo + i
		}
		t.Set(T(at+1), index...)
	})
	return t
}

// each calls f with every index of a shape.
func each(shape []int, f func(index []int)) {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	index := make([]int, len(shape))
	for range n {
		f(index)
		for d := len(shape) - 1; d >= 0; d-- {
			if index[d]++; index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
	}
}

// part returns the box of a tensor that a worker with an index has.
func part(whole, index, workers []int) []ccl.Range {
	box := make([]ccl.Range, len(whole))
	for d, n := range whole {
		box[d].Lo, box[d].Hi = ccl.BlockRange(n, index[d], workers[d])
	}
	return box
}

// slab returns the box that a worker has of a tensor that is divided in one dimension, among the workers
// along an axis.
func slab(p *partition.Partition, axis, dim int, whole []int) []ccl.Range {
	index, workers := make([]int, len(whole)), make([]int, len(whole))
	for d := range workers {
		workers[d] = 1
	}
	index[dim], workers[dim] = p.Index()[axis], p.Shape()[axis]
	return part(whole, index, workers)
}

// elements returns the elements of a tensor, row-major.
func elements[T real](t *primitive.Tensor[T]) []T {
	all := []T{}
	each(t.Shape(), func(index []int) { all = append(all, t.At(index...)) })
	return all
}

// is returns an error if tensors differ.
func is[T real](what string, got, want *primitive.Tensor[T]) error {
	return errors.Join(check(what+", its shape", got.Shape(), want.Shape()), check(what, elements(got), elements(want)))
}

// made is an operator for tests of any type.
type made[T real] func(world *partition.Partition) (op primitive.Operator[T], x *primitive.Tensor[T], err error)

// isAdjoint tests the adjoint of an operator, on all transports.
func isAdjoint[T float32 | float64](t *testing.T, workers int, build made[T]) {
	t.Run(fmt.Sprintf("%T", T(0)), func(t *testing.T) {
		everyWorld(t, workers, func(world *partition.Partition) error {
			op, x, err := build(world)
			if err != nil {
				return err
			}
			primitivetest.Adjoint(bg, t, world, op, x)
			return op.Close()
		})
	})
}

// real is the set of types of the tensors here.
type real interface{ int | float32 | float64 }
