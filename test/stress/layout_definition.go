package stress

import (
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/rowmajor"
	"github.com/goccl/goccl/partition"
)

// input returns the shape of a worker's input, or nil if it has none.
func (l *Layout) input(worker int) []int {
	if l.kind == "sum_reduce" {
		return l.shapeOf(worker, l.y, false)
	}
	return l.shapeOf(worker, l.x, l.kind == "all_gather")
}

// output returns the shape of a worker's result, or nil if it has none.
func (l *Layout) output(worker int) []int {
	if l.kind == "sum_reduce" {
		return l.shapeOf(worker, l.x, false)
	}
	return l.shapeOf(worker, l.y, l.kind == "reduce_scatter")
}

// shapeOf returns the shape of the tensor that a worker has on a team, a slab of the whole one if
// isSlab is true, or nil if it is not in the team.
func (l *Layout) shapeOf(worker int, on team, isSlab bool) []int {
	switch {
	case on.Rank(worker) < 0:
		return nil
	case l.kind == "repartition":
		return extents(l.box(on, worker))
	case l.kind == "halo_exchange":
		return l.padded(worker)
	case isSlab:
		return extents(l.slab(worker))
	}
	return l.shape
}

// box returns the part of the whole tensor that a worker has.
func (l *Layout) box(on team, worker int) []ccl.Range {
	box := make([]ccl.Range, len(l.shape))
	for d, i := range on.index(worker) {
		box[d].Lo, box[d].Hi = ccl.BlockRange(l.shape[d], i, on.Shape[d])
		if on.cuts != nil {
			box[d].Lo, box[d].Hi = on.cuts[d][i], on.cuts[d][i+1]
		}
	}
	return box
}

// slab returns the part of the whole tensor that a worker has along the axis.
func (l *Layout) slab(worker int) []ccl.Range {
	box := make([]ccl.Range, len(l.shape))
	for d, n := range l.shape {
		box[d].Hi = n
	}
	box[l.dim].Lo, box[l.dim].Hi = ccl.BlockRange(l.shape[l.dim], l.x.index(worker)[l.axes[0]], l.x.Shape[l.axes[0]])
	return box
}

func (l *Layout) padded(worker int) []int {
	shape := extents(l.box(l.x, worker))
	for d, i := range l.x.index(worker) {
		shape[d] += l.halos[d][i].Left + l.halos[d][i].Right
	}
	return shape
}

func extents(box []ccl.Range) []int {
	shape := make([]int, len(box))
	for d, r := range box {
		shape[d] = r.Hi - r.Lo
	}
	return shape
}

// terms returns the elements of the input that an element of a worker's result is the sum of.
func (l *Layout) terms(worker int, index []int) []cell {
	switch l.kind {
	case "all_sum_reduce":
		return l.eachOf(l.alike(worker), index)
	case "broadcast":
		return l.eachOf([]int{l.source(worker)}, index)

	case "sum_reduce":
		var from []int
		for _, w := range l.y.Workers {
			if l.source(w) == worker {
				from = append(from, w)
			}
		}
		return l.eachOf(from, index)

	case "repartition":
		boxOf := func(w int) []ccl.Range { return l.box(l.x, w) }
		return []cell{holder(l.x.Workers, boxOf, shift(index, l.box(l.y, worker)))}
	case "halo_exchange":
		return []cell{l.ghost(worker, index)}
	case "all_gather":
		return []cell{holder(l.alike(worker), l.slab, index)}
	case "reduce_scatter":
		return l.eachOf(l.alike(worker), shift(index, l.slab(worker)))
	}
	panic("no such element")
}

// shift returns an index in the whole tensor.
func shift(index []int, box []ccl.Range) []int {
	moved := slices.Clone(index)
	for d := range moved {
		moved[d] += box[d].Lo
	}
	return moved
}

// eachOf returns the element with an index of some workers' inputs.
func (l *Layout) eachOf(workers, index []int) (all []cell) {
	for _, w := range workers {
		all = append(all, cell{w, rowmajor.Rank(index, l.input(w))})
	}
	return all
}

// alike returns the workers that differ from one only in the axes.
func (l *Layout) alike(worker int) (all []int) {
	for _, w := range l.x.Workers {
		same := true
		for d, i := range l.x.index(w) {
			same = same && (i == l.x.index(worker)[d] || slices.Contains(l.axes, d))
		}
		if same {
			all = append(all, w)
		}
	}
	return all
}

// source returns the worker of the small team whose data a worker of the large one gets.
func (l *Layout) source(worker int) int {
	small := slices.Clone(l.x.Shape)
	if slices.Contains(l.opts, partition.TransposeSource) {
		slices.Reverse(small)
	}

	large, rank := l.y.index(worker), 0
	for d, i := range large {
		at := d
		if slices.Contains(l.opts, partition.TransposeDest) {
			at = len(large) - 1 - d
		}
		if at -= len(large) - len(small); at >= 0 && small[at] > 1 {
			rank = rank*small[at] + i
		}
	}
	return l.x.Workers[rank]
}

// holder returns the element of the whole tensor with an index, on the worker in whose box it is.
func holder(workers []int, boxOf func(worker int) []ccl.Range, index []int) cell {
	for _, w := range workers {
		local, inside := slices.Clone(index), true
		shape := extents(boxOf(w))
		for d, r := range boxOf(w) {
			local[d] -= r.Lo
			inside = inside && local[d] >= 0 && local[d] < shape[d]
		}
		if inside {
			return cell{w, rowmajor.Rank(local, shape)}
		}
	}
	panic("no worker has the element")
}

// ghost returns what a cell of a worker's tensor is a copy of: in each dimension by itself it is
// the worker's own, or that of a neighbour.
func (l *Layout) ghost(worker int, index []int) cell {
	at, owner := slices.Clone(index), l.x.index(worker)
	for d := range at {
		i := owner[d]
		lo, hi := ccl.BlockRange(l.shape[d], i, l.x.Shape[d])
		inner := at[d] - l.halos[d][i].Left // from the first own cell on
		switch {
		case inner < 0 && i > 0:
			owner[d]--
			before, _ := ccl.BlockRange(l.shape[d], i-1, l.x.Shape[d])
			at[d] = l.halos[d][i-1].Left + (lo + inner - before)
		case inner >= hi-lo && i < l.x.Shape[d]-1:
			owner[d]++
			at[d] = l.halos[d][i+1].Left + (inner - (hi - lo))
		}
	}
	w := l.x.at(owner)
	return cell{w, rowmajor.Rank(at, l.padded(w))}
}

// value returns a small integer for an element of a worker's tensor: sums of them are exact.
func value(what uint64, c cell) float64 {
	h := (what*0x9e3779b97f4a7c15 ^ uint64(c.worker)*0xbf58476d1ce4e5b9 ^ uint64(c.at)) * 0x94d049bb133111eb
	return float64(int64(h>>40%2001) - 1000)
}

// forward returns the elements of a worker's result, by the table.
func (l *Layout) forward(worker int) (all []float64) {
	shape := l.output(worker)
	if shape == nil {
		return nil
	}
	for at := range volume(shape) {
		sum := 0.0
		for _, c := range l.terms(worker, rowmajor.Index(at, shape)) {
			sum += value(ofX, c)
		}
		all = append(all, sum)
	}
	return all
}

// adjoint returns the elements of a worker's result of the adjoint, by the transposed table.
func (l *Layout) adjoint(worker int) []float64 {
	shape := l.input(worker)
	if shape == nil {
		return nil
	}

	all := make([]float64, volume(shape))
	for w := range l.workers {
		shape := l.output(w)
		if shape == nil {
			continue
		}

		for at := range volume(shape) {
			for _, c := range l.terms(w, rowmajor.Index(at, shape)) {
				if c.worker == worker {
					all[c.at] += value(ofY, cell{w, at})
				}
			}
		}
	}
	return all
}
