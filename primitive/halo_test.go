package primitive_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// grid is a tensor that is divided among workers with ghost cells: halos[d][i] are those of the workers
// with the index i in dimension d.
type grid struct {
	on    team
	halos [][]primitive.Halo
	whole []int // without ghost cells
}

func (g grid) of(index []int) []primitive.Halo {
	halos := make([]primitive.Halo, len(index))
	for d, i := range index {
		halos[d] = g.halos[d][i]
	}
	return halos
}

func (g grid) make(world *partition.Partition) (p *partition.Partition, halos []primitive.Halo, shape []int, err error) {
	if p, err = g.on.make(world); err != nil || !p.Active() {
		return p, nil, nil, err
	}
	halos = g.of(p.Index())
	for d, r := range part(g.whole, p.Index(), p.Shape()) {
		shape = append(shape, halos[d].Left+r.Hi-r.Lo+halos[d].Right)
	}
	return p, halos, shape, nil
}

func haloExchange[T real](g grid) made[T] {
	return func(world *partition.Partition) (primitive.Operator[T], *primitive.Tensor[T], error) {
		p, halos, shape, err := g.make(world)
		if err != nil {
			return nil, nil, err
		}
		op, err := primitive.NewHaloExchange[T](bg, p, halos...)
		return op, onlyIf[T](p.Active(), shape...), err
	}
}

// exchanges checks that ghost cells get the numbers of the cells that they are copies of, also at corners,
// and that those at edges keep what they had.
func (g grid) exchanges(t *testing.T, workers int) {
	t.Helper()
	isAdjoint(t, workers, haloExchange[float32](g))
	isAdjoint(t, workers, haloExchange[float64](g))
	everyWorld(t, workers, func(world *partition.Partition) error {
		op, x, err := haloExchange[int](g)(world)
		if err != nil {
			return err
		}
		r := slices.Index(g.on.workers, world.Rank())
		if r < 0 {
			y, err := op.Forward(bg, nil, nil)
			return errors.Join(err, check("an inactive worker's result", y.Shape(), []int{0}))
		}
		index := indexIn(r, g.on.shape)
		halos, box := g.of(index), part(g.whole, index, g.on.shape)
		x.Fill(-1 - world.Rank()) // what ghost cells hold
		own := make([]ccl.Range, len(box))
		for d, h := range halos {
			own[d] = ccl.Range{Lo: h.Left, Hi: h.Left + box[d].Hi - box[d].Lo}
		}
		if err := x.Slice(own...).CopyFrom(numbered[int](g.whole, box)); err != nil {
			return err
		}
		want := primitive.NewTensor[int](x.Shape()...)
		each(x.Shape(), func(at []int) {
			number, owner := 0, make([]int, len(at)) // of the cell in the whole tensor
			for d, i := range at {
				place := box[d].Lo + i - halos[d].Left
				// A ghost cell at an edge belongs to the worker at the edge, and so to the neighbour beside it in
				// the other dimensions.
				switch {
				case i < halos[d].Left && index[d] > 0:
					owner[d] = index[d] - 1
				case i >= own[d].Hi && index[d] < g.on.shape[d]-1:
					owner[d] = index[d] + 1
				case i < halos[d].Left || i >= own[d].Hi:
					owner[d], place = index[d], -1
				default:
					owner[d] = index[d]
				}
				if place < 0 || number < 0 {
					number = -1
				} else {
					number = number*g.whole[d] + place
				}
			}
			if number >= 0 {
				want.Set(number+1, at...)
				return
			}
			rank := 0
			for d, i := range owner {
				rank = rank*g.on.shape[d] + i
			}
			want.Set(-1-g.on.workers[rank], at...)
		})
		y, err := op.Forward(bg, nil, x)
		if err != nil {
			return err
		}
		inPlace, err := op.Forward(bg, x, x)
		return errors.Join(err, is("exchanged", y, want), is("in place", inPlace, want))
	})
}

func TestHaloExchange(t *testing.T) {
	one, two := primitive.Halo{Left: 1, Right: 1}, primitive.Halo{Left: 2, Right: 2}
	for name, g := range map[string]grid{
		"line":      {all(3), [][]primitive.Halo{{{0, 1}, {1, 1}, {1, 0}}}, []int{8}},
		"square":    {all(2, 2), [][]primitive.Halo{{one, one}, {one, one}}, []int{5, 6}},
		"corners":   {all(3, 3), [][]primitive.Halo{{one, two, one}, {two, one, two}}, []int{9, 9}},
		"unequal":   {all(2, 3), [][]primitive.Halo{{{0, 2}, {3, 1}}, {{0, 1}, {0, 2}, {1, 0}}}, []int{9, 10}},
		"one sided": {team{[]int{4, 2, 0}, []int{3, 1}}, [][]primitive.Halo{{{0, 0}, {2, 0}, {1, 0}}, {{0, 0}}}, []int{7, 3}},
		"none":      {all(2, 2), [][]primitive.Halo{{{}, {}}, {{}, {}}}, []int{4, 4}},
		"alone":     {all(1, 1), [][]primitive.Halo{{two}, {one}}, []int{3, 3}},
		"cube":      {all(2, 1, 2), [][]primitive.Halo{{one, one}, {one}, {one, one}}, []int{4, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) { g.exchanges(t, 10) })
	}
}

func TestHaloMistakes(t *testing.T) {
	one := primitive.Halo{Left: 1, Right: 1}
	for want, c := range map[string]struct {
		on    team
		halos func(rank int) []primitive.Halo
		shape func(rank int) []int
	}{
		"rank 1 has halos for 1 dimensions, and the partition's shape [2 1] has 2":          {all(2, 1), func(r int) []primitive.Halo { return []primitive.Halo{one, one}[r:] }, nil},
		"rank 0 has the halo 0, -1 in dimension 0: from 0 to 1073741824 cells are possible": {all(2), func(r int) []primitive.Halo { return []primitive.Halo{{0, r - 1}} }, nil},
		"the ranks 0 and 2 have the same place in dimension 1, and different halos there: {1 1} and {0 0}": {all(2, 2), func(r int) []primitive.Halo {
			return []primitive.Halo{one, []primitive.Halo{one, one, {}, one}[r]}
		}, nil},
		"the part of rank 1 has the shape [4 1] with 2 dimensions, and the partition's shape [2] has 1":        {all(2), func(int) []primitive.Halo { return []primitive.Halo{one} }, func(r int) []int { return [][]int{{4}, {4, 1}}[r] }},
		"the part of rank 0 has the shape [1], and its 1 and 1 ghost cells are more than that in dimension 0":  {all(2), func(int) []primitive.Halo { return []primitive.Halo{one} }, func(r int) []int { return [][]int{{1}, {4}}[r] }},
		"rank 1 needs 3 cells of rank 0 in dimension 0, which has 2 of its own":                                {all(2), func(r int) []primitive.Halo { return []primitive.Halo{{Left: 3 * r}} }, func(r int) []int { return [][]int{{2}, {5}}[r] }},
		"rank 0 needs 2 cells of rank 1 in dimension 0, which has 1 of its own":                                {all(2), func(r int) []primitive.Halo { return []primitive.Halo{{Right: 2 - 2*r}} }, func(r int) []int { return [][]int{{5}, {1}}[r] }},
		"the ranks 0 and 1 have the same place in dimension 1, and parts of different shapes: [3 4] and [3 5]": {all(2, 1), func(int) []primitive.Halo { return []primitive.Halo{one, {}} }, func(r int) []int { return []int{3, 4 + r} }},
		"rank 1 of the group of workers [0 1] passes no tensor, and has a part of the input":                   {all(2), func(int) []primitive.Halo { return []primitive.Halo{one} }, func(r int) []int { return [][]int{{4}, nil}[r] }},
	} {
		t.Run(want, func(t *testing.T) {
			workers := len(c.on.workers)
			everyWorld(t, workers, func(world *partition.Partition) error {
				p, err := c.on.make(world)
				if err != nil {
					return err
				}
				op, err := primitive.NewHaloExchange[float32](bg, p, c.halos(world.Rank())...)
				if err != nil || c.shape == nil {
					return isWrong(err, want)
				}
				var x *primitive.Tensor[float32]
				if shape := c.shape(world.Rank()); shape != nil {
					x = primitive.NewTensor[float32](shape...)
				}
				_, err = op.Forward(bg, nil, x)
				if err := isWrong(err, want); err != nil {
					return err
				}
				_, err = op.Forward(bg, nil, primitive.NewTensor[float32](slices.Repeat([]int{9}, len(c.on.shape))...))
				return err
			})
		})
	}
}

func isWrong(err error, want string) error {
	var wrong *ccl.InvalidArgumentError
	if !errors.As(err, &wrong) || wrong.Message != want {
		return fmt.Errorf("got %w, want %s", err, want)
	}
	return nil
}
