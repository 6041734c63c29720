package primitive_test

import (
	"errors"
	"fmt"
	"github.com/goccl/goccl/test/golden"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
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

// uneven are inputs of a repartition whose parts have any shapes that add up: by rank, the box of
// the whole.
var uneven = map[string]struct {
	x, y  team
	whole []int
	boxes [][][2]int
}{
	"4 + 2 + 2":            {all(3), all(3), []int{8}, [][][2]int{{{0, 4}}, {{4, 6}}, {{6, 8}}}},
	"4 + 2 + 2 to others":  {all(3), team{[]int{5, 0, 4, 1}, []int{4}}, []int{8}, [][][2]int{{{0, 4}}, {{4, 6}}, {{6, 8}}}},
	"empty parts":          {all(3), all(2), []int{5}, [][][2]int{{{0, 0}}, {{0, 5}}, {{5, 5}}}},
	"rows":                 {all(2, 1), all(1, 2), []int{6, 4}, [][][2]int{{{0, 2}, {0, 4}}, {{2, 6}, {0, 4}}}},
	"a grid":               {all(2, 2), team{[]int{3, 1, 4}, []int{1, 3}}, []int{5, 4}, [][][2]int{{{0, 4}, {0, 1}}, {{0, 4}, {1, 4}}, {{4, 5}, {0, 1}}, {{4, 5}, {1, 4}}}},
	"columns of their own": {all(2, 2), all(2, 2), []int{6, 8}, [][][2]int{{{0, 2}, {0, 3}}, {{0, 3}, {3, 8}}, {{2, 6}, {0, 3}}, {{3, 6}, {3, 8}}}},
}

// An input may have parts of any shapes that add up, and the result is even, on equal partitions as
// well. The adjoint gives back the parts of the last input.
func TestRepartitionOfUnevenParts(t *testing.T) {
	for name, l := range uneven {
		input := func(world *partition.Partition) []ccl.Range {
			if r := slices.Index(l.x.workers, world.Rank()); r >= 0 {
				return ranges(l.boxes[r]...)
			}
			return nil
		}
		t.Run(name, func(t *testing.T) {
			isAdjoint(t, 6, func(world *partition.Partition) (primitive.Operator[float64], *primitive.Tensor[float64], error) {
				op, in, err := repartition[float64](l.x, l.y, l.whole...)(world)
				if in != nil {
					in = numbered[float64](l.whole, input(world))
				}
				return op, in, err
			})
			everyWorld(t, 6, func(world *partition.Partition) error {
				op, even, err := repartition[int](l.x, l.y, l.whole...)(world)
				if err != nil {
					return err
				}
				var in *primitive.Tensor[int]
				if even != nil {
					in = numbered[int](l.whole, input(world))
				}
				want := primitive.NewTensor[int](0)
				if r := slices.Index(l.y.workers, world.Rank()); r >= 0 {
					want = numbered[int](l.whole, part(l.whole, indexIn(r, l.y.shape), l.y.shape))
				}
				return errors.Join(movesBothWays(op, in, want), movesBothWays(op, even, want), movesBothWays(op, in, want), op.Close())
			})
		})
	}
}

func ranges(box ...[2]int) (all []ccl.Range) {
	for _, r := range box {
		all = append(all, ccl.Range{Lo: r[0], Hi: r[1]})
	}
	return all
}

// movesBothWays checks both directions of one call of a repartition.
func movesBothWays(op primitive.Operator[int], in, want *primitive.Tensor[int]) error {
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
	return errors.Join(is("moved", out, want), is("moved back", back, in))
}

// An adjoint whose input is uneven, and the first call: the result is even.
func TestRepartitionOfAnUnevenGradient(t *testing.T) {
	everyWorld(t, 3, func(world *partition.Partition) error {
		op, even, err := repartition[int](all(3), all(2), 8)(world)
		if err != nil {
			return err
		}
		var dy *primitive.Tensor[int]
		if r := world.Rank(); r < 2 {
			dy = numbered[int]([]int{8}, ranges([][2]int{{0, 7}, {7, 8}}[r]))
		}
		dx, err := op.Adjoint(bg, nil, dy)
		if err != nil {
			return err
		}
		return errors.Join(is("gradient", dx, even), op.Close())
	})
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
	texts := golden.Errors(t)
	for want, c := range map[string]struct {
		x, y  team
		shape func(rank int) []int
	}{
		"the partitions have the shapes [2] and [1 2], with different numbers of dimensions":                                          {all(2), all(1, 2), nil},
		"rank 1 of the group of workers [0 1] passes no tensor, and has a part of the input":                                          {all(2), team{[]int{1, 0}, []int{2}}, func(r int) []int { return [][]int{{3}, nil}[r] }},
		"rank 1 of the group of workers [0 1] passes a tensor of shape [3], and has no part of the input":                             {all(1), all(2), func(r int) []int { return []int{3} }},
		"the part of rank 1 has the shape [3 1] with 2 dimensions, and the partition's shape [2] has 1":                               {all(2), team{[]int{1, 0}, []int{2}}, func(r int) []int { return [][]int{{3}, {3, 1}}[r] }},
		"the part of rank 1 has the shape [3 5] and ends at 5 in dimension 1, where the tensor of shape [6 4] ends at 4 along rank 0": {all(2, 1), all(1, 2), func(r int) []int { return [][]int{{3, 4}, {3, 5}}[r] }},
		"the part of rank 1 has the shape [3 3] and ends at 3 in dimension 1, where the tensor of shape [6 4] ends at 4 along rank 0": {all(2, 1), all(1, 2), func(r int) []int { return [][]int{{3, 4}, {3, 3}}[r] }},
		"the tensor has the extent 1 in dimension 1, and cannot be divided among 2 workers":                                           {all(2, 1), all(1, 2), func(r int) []int { return []int{3, 1} }},
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
				texts.Add(want, err)
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

// Parts whose extents add up along every line may still overlap, or leave a gap.
func TestRepartitionOfPartsThatDoNotTile(t *testing.T) {
	for want, shapes := range map[string][][]int{
		"the parts of ranks 0 and 3 overlap in the tensor of shape [6 8]: they have the shapes [4 5] and [3 4]": {{4, 5}, {3, 3}, {2, 4}, {3, 4}},
		"the parts have 47 elements, and the tensor of shape [6 8] has 48":                                      {{2, 5}, {3, 3}, {4, 4}, {3, 4}},
	} {
		t.Run(want, func(t *testing.T) {
			everyWorld(t, 4, func(world *partition.Partition) error {
				op, _, err := repartition[int](all(2, 2), all(4, 1), 6, 8)(world)
				if err != nil {
					return err
				}
				_, err = op.Forward(bg, nil, primitive.NewTensor[int](shapes[world.Rank()]...))
				return errors.Join(isWrong(err, want), op.Close())
			})
		})
	}
}

func (l team) String() string { return fmt.Sprint(l.shape, " of workers ", l.workers) }
