package primitive_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

func allSumReduce[T real](p team, axes []int, shape ...int) made[T] {
	return func(world *partition.Partition) (primitive.Operator[T], *primitive.Tensor[T], error) {
		on, err := p.make(world)
		if err != nil {
			return nil, nil, err
		}
		op, err := primitive.NewAllSumReduce[T](bg, on, axes...)
		return op, onlyIf[T](on.Active(), shape...), err
	}
}

func TestAllSumReduce(t *testing.T) {
	for _, axes := range [][]int{nil, {0}, {1}, {1, 0}, {0, 1, 2}} {
		t.Run(fmt.Sprint(axes), func(t *testing.T) {
			on := team{[]int{6, 0, 1, 2, 3, 4}, []int{2, 3, 1}}
			isAdjoint(t, 7, allSumReduce[float32](on, axes, 3, 2))
			isAdjoint(t, 7, allSumReduce[float64](on, axes, 3, 2))
			everyWorld(t, 7, func(world *partition.Partition) error {
				op, x, err := allSumReduce[int](on, axes, 3, 2)(world)
				if err != nil {
					return err
				}
				me := slices.Index(on.workers, world.Rank())
				if me < 0 {
					y, err := op.Forward(bg, nil, nil)
					return errors.Join(err, check("an inactive worker's result", y.Shape(), []int{0}))
				}
				x.Fill(1 << (4 * me))
				y, err := op.Forward(bg, nil, x)
				if err != nil {
					return err
				}
				want := 0
				for r := range 6 {
					same := (r/3 == me/3 || slices.Contains(axes, 0)) && (r%3 == me%3 || slices.Contains(axes, 1))
					if same {
						want += 1 << (4 * r)
					}
				}
				inPlace, err := op.Forward(bg, x, x)
				return errors.Join(err, check("the sum", elements(y), slices.Repeat([]int{want}, 6)), is("in place", inPlace, y))
			})
		})
	}
}

// moves are partitions that broadcasts go from and to.
var moves = map[string]struct {
	x, y team
	opts []partition.Option
}{
	"documents":   {x: team{[]int{1, 2, 3}, []int{1, 3, 1}}, y: all(2, 3, 2)},
	"equal":       {x: all(2, 2), y: all(2, 2)},
	"other order": {x: all(2, 2), y: team{[]int{3, 2, 1, 0}, []int{2, 2}}},
	"disjoint":    {x: team{[]int{0, 1}, []int{2}}, y: team{[]int{2, 3, 4, 5}, []int{2, 2}}},
	"overlapping": {x: team{[]int{5, 0}, []int{2, 1}}, y: team{[]int{0, 5, 4, 3}, []int{2, 2}}},
	"one":         {x: team{[]int{4}, []int{1}}, y: team{[]int{0, 1, 2}, []int{3}}},
	"itself":      {x: team{[]int{3}, []int{1}}, y: team{[]int{3}, []int{1, 1}}},
	"transposed":  {x: all(2, 3), y: team{span(1, 7), []int{3, 2}}, opts: []partition.Option{partition.TransposeSource}},
}

func broadcast[T real](x, y team, opts []partition.Option, shape ...int) made[T] {
	return func(world *partition.Partition) (primitive.Operator[T], *primitive.Tensor[T], error) {
		px, py, err := both(world, x, y)
		if err != nil {
			return nil, nil, err
		}
		op, err := primitive.NewBroadcast[T](bg, px, py, opts...)
		return op, onlyIf[T](px.Active(), shape...), err
	}
}

func sumReduce[T real](x, y team, opts []partition.Option, shape ...int) made[T] {
	return func(world *partition.Partition) (primitive.Operator[T], *primitive.Tensor[T], error) {
		px, py, err := both(world, x, y)
		if err != nil {
			return nil, nil, err
		}
		op, err := primitive.NewSumReduce[T](bg, px, py, opts...)
		return op, onlyIf[T](px.Active(), shape...), err
	}
}

// source returns the worker of x that a worker of y gets its data from, or -1.
func source(x, y team, opts []partition.Option, worker int) int {
	r := slices.Index(y.workers, worker)
	if r < 0 {
		return -1
	}
	index := make([]int, len(y.shape))
	for d := len(y.shape) - 1; d >= 0; d-- {
		index[d], r = r%y.shape[d], r/y.shape[d]
	}
	shape := slices.Clone(x.shape)
	if len(opts) > 0 { // transposed: it is compared in reverse, and its workers stay in order
		slices.Reverse(shape)
	}
	at := 0
	for d, extent := range shape {
		if extent > 1 {
			at = at*extent + index[len(index)-len(shape)+d]
		}
	}
	return x.workers[at]
}

func TestBroadcast(t *testing.T) {
	for name, m := range moves {
		t.Run(name, func(t *testing.T) {
			isAdjoint(t, 13, broadcast[float32](m.x, m.y, m.opts, 2, 5))
			isAdjoint(t, 13, broadcast[float64](m.x, m.y, m.opts, 2, 5))
			everyWorld(t, 13, func(world *partition.Partition) error {
				op, x, err := broadcast[int](m.x, m.y, m.opts, 2, 5)(world)
				if err != nil {
					return err
				}
				if x != nil {
					x.Fill(1 + world.Rank())
				}
				y, err := op.Forward(bg, nil, x)
				if err != nil {
					return err
				}
				from := source(m.x, m.y, m.opts, world.Rank())
				want := primitive.NewTensor[int](0)
				if from >= 0 {
					want = primitive.NewTensor[int](2, 5)
					want.Fill(1 + from)
				}
				return is("the copy", y, want)
			})
		})
	}
}

func TestSumReduce(t *testing.T) {
	for name, m := range moves {
		t.Run(name, func(t *testing.T) {
			back := m.opts
			if back != nil {
				back = []partition.Option{partition.TransposeDest} // the small partition
			}
			isAdjoint(t, 13, sumReduce[float32](m.y, m.x, back, 2, 5))
			isAdjoint(t, 13, sumReduce[float64](m.y, m.x, back, 2, 5))
			everyWorld(t, 13, func(world *partition.Partition) error {
				op, x, err := sumReduce[int](m.y, m.x, back, 2, 5)(world)
				if err != nil {
					return err
				}
				if x != nil {
					x.Fill(1 << (4 * slices.Index(m.y.workers, world.Rank())))
				}
				y, err := op.Forward(bg, nil, x)
				if err != nil {
					return err
				}
				want := primitive.NewTensor[int](0)
				if slices.Contains(m.x.workers, world.Rank()) {
					want = primitive.NewTensor[int](2, 5)
					sum := 0
					for i, w := range m.y.workers {
						if source(m.x, m.y, m.opts, w) == world.Rank() {
							sum += 1 << (4 * i)
						}
					}
					want.Fill(sum)
				}
				return is("the sum", y, want)
			})
		})
	}
}

func allGather[T real](p team, axis, dim int, whole []int) made[T] {
	return func(world *partition.Partition) (primitive.Operator[T], *primitive.Tensor[T], error) {
		on, err := p.make(world)
		if err != nil {
			return nil, nil, err
		}
		op, err := primitive.NewAllGather[T](bg, on, axis, dim)
		if err != nil || !on.Active() {
			return op, nil, err
		}
		return op, numbered[T](whole, slab(on, axis, dim, whole)), nil
	}
}

func reduceScatter[T real](p team, axis, dim int, whole []int) made[T] {
	return func(world *partition.Partition) (primitive.Operator[T], *primitive.Tensor[T], error) {
		on, err := p.make(world)
		if err != nil {
			return nil, nil, err
		}
		op, err := primitive.NewReduceScatter[T](bg, on, axis, dim)
		if err != nil || !on.Active() {
			return op, nil, err
		}
		return op, numbered[T](whole, part(whole, make([]int, len(whole)), slices.Repeat([]int{1}, len(whole)))), nil
	}
}

func TestAllGatherAndReduceScatter(t *testing.T) {
	on := team{[]int{6, 0, 1, 2, 3, 4}, []int{2, 3}}
	whole := []int{4, 7, 3}
	for axis := range 2 {
		for dim := range 3 {
			t.Run(fmt.Sprint("axis=", axis, "/dim=", dim), func(t *testing.T) {
				isAdjoint(t, 7, allGather[float32](on, axis, dim, whole))
				isAdjoint(t, 7, allGather[float64](on, axis, dim, whole))
				isAdjoint(t, 7, reduceScatter[float32](on, axis, dim, whole))
				isAdjoint(t, 7, reduceScatter[float64](on, axis, dim, whole))
				everyWorld(t, 7, func(world *partition.Partition) error {
					gather, x, err := allGather[int](on, axis, dim, whole)(world)
					if err != nil {
						return err
					}
					scatter, all, err := reduceScatter[int](on, axis, dim, whole)(world)
					if err != nil {
						return err
					}
					y, err := gather.Forward(bg, nil, x)
					if err != nil {
						return err
					}
					sum, err := scatter.Forward(bg, nil, all)
					if err != nil {
						return err
					}
					if world.Rank() == 5 {
						return errors.Join(check("gathered", y.Shape(), []int{0}), check("scattered", sum.Shape(), []int{0}))
					}
					want := primitive.NewTensor[int](x.Shape()...)
					each(x.Shape(), func(index []int) { want.Set(x.At(index...)*on.shape[axis], index...) })
					return errors.Join(is("gathered", y, all), is("scattered", sum, want))
				})
			})
		}
	}
}
