package primitive_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

func repartition[T real](x, y team, whole ...int) made[T] {
	return func(world *partition.Partition) (primitive.Operator[T], *primitive.Tensor[T], error) {
		px, py, err := both(world, x, y)
		if err != nil {
			return nil, nil, err
		}
		op, err := primitive.NewRepartition[T](bg, px, py)
		if err != nil || !px.Active() {
			return op, nil, err
		}
		return op, numbered[T](whole, part(whole, px.Index(), px.Shape())), nil
	}
}

// repartitions checks both directions of a repartition: every element gets where it belongs.
func repartitions(t *testing.T, workers int, x, y team, whole ...int) {
	t.Helper()
	isAdjoint(t, workers, repartition[float32](x, y, whole...))
	isAdjoint(t, workers, repartition[float64](x, y, whole...))
	everyWorld(t, workers, func(world *partition.Partition) error {
		op, in, err := repartition[int](x, y, whole...)(world)
		if err != nil {
			return err
		}
		want := primitive.NewTensor[int](0)
		if r := slices.Index(y.workers, world.Rank()); r >= 0 {
			want = numbered[int](whole, part(whole, indexIn(r, y.shape), y.shape))
		}
		out, err := op.Forward(bg, nil, in)
		if err != nil {
			return err
		}
		back, err := op.Adjoint(bg, nil, out)
		if err != nil {
			return err
		}
		if in == nil {
			in = primitive.NewTensor[int](0)
		}
		return errors.Join(is("moved", out, want), is("moved back", back, in), op.Close())
	})
}

func indexIn(rank int, shape []int) []int {
	index := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		index[d], rank = rank%shape[d], rank/shape[d]
	}
	return index
}

func TestRepartition(t *testing.T) {
	for name, l := range map[string]struct {
		x, y  team
		whole []int
	}{
		"rows to columns":  {all(4, 1), all(1, 4), []int{7, 9}},
		"equal":            {all(2, 2), all(2, 2), []int{5, 4}},
		"other order":      {all(2, 2), team{[]int{3, 1, 0, 2}, []int{2, 2}}, []int{5, 4}},
		"disjoint":         {team{[]int{0, 1}, []int{2, 1}}, team{[]int{4, 3, 2}, []int{1, 3}}, []int{4, 5}},
		"overlapping":      {team{[]int{0, 1, 2}, []int{3, 1, 1}}, team{[]int{2, 1, 3, 4}, []int{1, 2, 2}}, []int{5, 3, 4}},
		"scatter":          {team{[]int{4}, []int{1, 1}}, all(2, 2), []int{5, 5}},
		"gather":           {all(2, 2), team{[]int{4}, []int{1, 1}}, []int{5, 5}},
		"few elements":     {all(4), team{[]int{5, 4, 3}, []int{3}}, []int{2}}, // some parts are empty
		"extent 1, equal":  {all(2), all(2), []int{1}},
		"extent 1, to one": {all(2), team{[]int{0}, []int{1}}, []int{1}},
		"one dimension":    {all(3), all(4), []int{10}},
	} {
		t.Run(name, func(t *testing.T) { repartitions(t, 6, l.x, l.y, l.whole...) })
	}
}

// A tensor may have another shape in each call, and old plans are found again.
func TestRepartitionOfManyShapes(t *testing.T) {
	everyWorld(t, 2, func(world *partition.Partition) error {
		x, err := all(2, 1).make(world)
		if err != nil {
			return err
		}
		y, err := all(1, 2).make(world)
		if err != nil {
			return err
		}
		op, err := primitive.NewRepartition[int](bg, x, y)
		if err != nil {
			return err
		}
		for i := range 60 {
			whole := []int{2 + i%20, 2 + i%7}
			out, err := op.Forward(bg, nil, numbered[int](whole, part(whole, x.Index(), x.Shape())))
			if err != nil {
				return err
			}
			if err := is("moved", out, numbered[int](whole, part(whole, y.Index(), y.Shape()))); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestRepartitionMistakes(t *testing.T) {
	for want, c := range map[string]struct {
		x, y  team
		shape func(rank int) []int
	}{
		"the partitions have the shapes [2] and [1 2], with different numbers of dimensions":              {all(2), all(1, 2), nil},
		"rank 1 of the group of workers [0 1] passes no tensor, and has a part of the input":              {all(2), team{[]int{1, 0}, []int{2}}, func(r int) []int { return [][]int{{3}, nil}[r] }},
		"rank 1 of the group of workers [0 1] passes a tensor of shape [3], and has no part of the input": {all(1), all(2), func(r int) []int { return []int{3} }},
		"the part of rank 1 has the shape [3 1] with 2 dimensions, and the partition's shape [2] has 1":   {all(2), team{[]int{1, 0}, []int{2}}, func(r int) []int { return [][]int{{3}, {3, 1}}[r] }},
		"the part of rank 0 has the shape [2 4], and its part of [6 4] on the partition [2 1] is [3 4]":   {all(2, 1), all(1, 2), func(r int) []int { return [][]int{{2, 4}, {4, 4}}[r] }},
		"the part of rank 1 has the shape [3 5], and its part of [6 4] on the partition [2 1] is [3 4]":   {all(2, 1), all(1, 2), func(r int) []int { return [][]int{{3, 4}, {3, 5}}[r] }},
		"the tensor has the extent 1 in dimension 1, and cannot be divided among 2 workers":               {all(2, 1), all(1, 2), func(r int) []int { return []int{3, 1} }},
	} {
		t.Run(want, func(t *testing.T) {
			everyWorld(t, 2, func(world *partition.Partition) error {
				x, err := c.x.make(world)
				if err != nil {
					return err
				}
				y, err := c.y.make(world)
				if err != nil {
					return err
				}
				op, err := primitive.NewRepartition[float32](bg, x, y)
				if err != nil || c.shape == nil {
					return isWrong(err, want)
				}
				var in *primitive.Tensor[float32]
				if shape := c.shape(world.Rank()); shape != nil {
					in = primitive.NewTensor[float32](shape...)
				}
				_, err = op.Forward(bg, nil, in)
				if err := isWrong(err, want); err != nil {
					return err
				}
				// The operator stays usable.
				in = onlyIf[float32](x.Active(), slices.Repeat([]int{3}, len(x.Shape()))...)
				_, err = op.Forward(bg, nil, in)
				return err
			})
		})
	}
}

func (l team) String() string { return fmt.Sprint(l.shape, " of workers ", l.workers) }
