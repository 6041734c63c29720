package primitive

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/rowmajor"
)

// tiling is how a tensor is divided among the workers of a partition.
type tiling struct {
	whole []int         // shape of the tensor
	boxes [][]ccl.Range // by rank in the partition
}

// evenTiling divides a tensor as ccl.BlockRange does.
func evenTiling(whole, workers []int) *tiling {
	t := &tiling{whole: whole}
	for rank := range volume(workers) {
		t.boxes = append(t.boxes, box(whole, rowmajor.Index(rank, workers), workers))
	}
	return t
}

// inputTiling returns how the tensor is divided of which the workers bring parts, or why these do
// not add up: the same on all workers.
func (o *route[T]) inputTiling() (*tiling, error) {
	g, workers := o.union, o.from.Shape
	if err := g.checkInputs(func(r int) bool { return o.from.Rank(r) >= 0 }); err != nil {
		return nil, err
	}
	for rank, worker := range o.from.Workers {
		if n := len(g.dims(worker)); n != len(workers) {
			return nil, g.share([]int{worker}, "the part of rank %d has the shape %s with %d dimensions, and the partition's shape %d has %d",
				rank, g.shapeText(worker), n, workers, len(workers))
		}
	}

	t := o.addUp()
	for d, extent := range t.whole {
		if g.header[callAt] == int(forward) && !o.identity && extent == 1 && o.to.Shape[d] != 1 {
			return nil, g.share(nil, "the tensor has the extent 1 in dimension %d, and cannot be divided among %d workers", d, o.to.Shape[d])
		}
	}

	elements := 0
	for rank, box := range t.boxes {
		shape := g.shapeText(o.from.Workers[rank])
		for d, i := range rowmajor.Index(rank, workers) {
			if i == workers[d]-1 && box[d].Hi != t.whole[d] {
				return nil, g.share(o.from.Workers[rank:rank+1], "the part of rank %d has the shape %s and ends at %d in dimension %d, where the tensor of shape %d ends at %d along rank 0",
					rank, shape, box[d].Hi, d, t.whole, t.whole[d])
			}
		}

		for other, before := range t.boxes[:rank] {
			if volume(extents(intersect(before, box))) > 0 {
				return nil, g.share([]int{o.from.Workers[other], o.from.Workers[rank]}, "the parts of ranks %d and %d overlap in the tensor of shape %d: they have the shapes %s and %s",
					other, rank, t.whole, g.shapeText(o.from.Workers[other]), shape)
			}
		}
		elements += volume(extents(box))
	}
	if elements != volume(t.whole) {
		return nil, g.share(nil, "the parts have %d elements, and the tensor of shape %d has %d", elements, t.whole, volume(t.whole))
	}
	return t, nil
}

// addUp puts the parts that the workers bring next to each other: each begins where the one before
// it ends, in each dimension. The shape of the whole is that along rank 0.
func (o *route[T]) addUp() *tiling {
	workers := o.from.Shape

	t := &tiling{whole: make([]int, len(workers)), boxes: make([][]ccl.Range, len(o.from.Workers))}
	for rank, worker := range o.from.Workers {
		t.boxes[rank] = make([]ccl.Range, len(workers))
		for d, extent := range o.union.dims(worker) {
			lo := 0
			if before := rowmajor.Index(rank, workers); before[d] > 0 {
				before[d]--
				lo = t.boxes[rowmajor.Rank(before, workers)][d].Hi
			}
			t.boxes[rank][d] = ccl.Range{Lo: lo, Hi: lo + extent}
		}
	}

	for d, n := range workers {
		end := make([]int, len(workers))
		end[d] = n - 1
		t.whole[d] = t.boxes[rowmajor.Rank(end, workers)][d].Hi
	}
	return t
}
