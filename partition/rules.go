package partition

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/internal/rowmajor"
)

// The arithmetic of partitions. Ranks and indices are row-major; nothing here communicates.

// count returns 0 to n-1.
func count(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// product returns the number of elements of a shape: 1 if it has no dimensions.
func product(shape []int) int {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	return n
}

// checkShape checks the shape of a partition of that many workers.
func checkShape(shape []int, workers int) error {
	n := 1
	for _, extent := range shape {
		if extent < 1 || n > workers/extent {
			n = 0
			break
		}
		n *= extent
	}
	if n != workers {
		return invalid("cartesian", "the product of the shape %d is not %d, the number of workers", shape, workers)
	}
	return nil
}

// neighborsOf returns the neighbours of a rank in each dimension of a shape.
func neighborsOf(rank int, shape []int) []Neighbors {
	beside := make([]Neighbors, len(shape))
	index, step := rowmajor.Index(rank, shape), 1
	for d := len(shape) - 1; d >= 0; d-- {
		beside[d] = Neighbors{Left: None, Right: None}
		if index[d] > 0 {
			beside[d].Left = rank - step
		}
		if index[d] < shape[d]-1 {
			beside[d].Right = rank + step
		}
		step *= shape[d]
	}

	return beside
}

// union returns a, followed by those elements of b that a does not have.
func union(a, b []int) []int {
	all := slices.Clone(a)
	for _, m := range b {
		if !slices.Contains(a, m) {
			all = append(all, m)
		}
	}
	return all
}

// checkAxes checks dimensions of a shape.
func checkAxes(operation string, axes []int, shape []int) error {
	for i, axis := range axes {
		switch {
		case axis < 0 || axis >= len(shape):
			return invalid(operation, "axis %d is not a dimension of the shape %d (0 to %d)", axis, shape, len(shape)-1)
		case slices.Contains(axes[:i], axis):
			return invalid(operation, "axis %d is named twice", axis)
		}
	}
	return nil
}

// reductions returns the groups of ranks that differ only in the axes: one group for each index in
// the other dimensions, in the order of these indices, and in each group the ranks in ascending
// order.
func reductions(shape, axes []int) [][]int {
	outer := slices.Clone(shape)
	for _, axis := range axes {
		outer[axis] = 1
	}

	groups := make([][]int, product(outer))
	for rank := range product(shape) {
		index := rowmajor.Index(rank, shape)
		for _, axis := range axes {
			index[axis] = 0
		}
		g := rowmajor.Rank(index, outer)
		groups[g] = append(groups[g], rank)
	}
	return groups
}

// sources returns, for each rank of the shape to, the rank of the shape from that its data comes
// from when from is broadcast to to: from gets dimensions of 1 on the left, and then an extent of 1
// is stretched. The options reverse the dimensions first, for this comparison alone: the ranks of
// from go, in their order, to the indices in those dimensions of to that are not stretched, in
// their order.
func sources(from, to []int, how Option) ([]int, error) {
	source, dest := slices.Clone(from), slices.Clone(to)
	if how&TransposeSource != 0 {
		slices.Reverse(source)
	}
	if how&TransposeDest != 0 {
		slices.Reverse(dest)
	}
	if len(source) > len(dest) {
		return nil, fmt.Errorf("the shape %d has more dimensions than %d", source, dest)
	}

	added := len(dest) - len(source)
	for d, extent := range source {
		if extent != dest[added+d] && extent != 1 {
			return nil, fmt.Errorf("the shape %d cannot be stretched to %d: in dimension %d of %d, %d is neither 1 nor %d", source, dest, added+d, len(dest), extent, dest[added+d])
		}
	}
	all := make([]int, product(to))
	for rank := range all {
		for d, i := range rowmajor.Index(rank, to) {
			at := d // in dest
			if how&TransposeDest != 0 {
				at = len(to) - 1 - d
			}
			if at >= added && source[at-added] != 1 { // not stretched
				all[rank] = all[rank]*to[d] + i
			}
		}
	}
	return all, nil
}

// groups returns a group for each root: the root first, then the workers whose data comes from or
// goes to it, in the order of all. ends[i] is the end of the move on the other side, and rootOf[i]
// the rank of its root.
func groups(roots, ends, rootOf, all []int) [][]int {
	made := make([][]int, len(roots))
	for r, root := range roots {
		made[r] = []int{root}
	}
	for _, worker := range all {
		if i := slices.Index(ends, worker); i >= 0 && roots[rootOf[i]] != worker {
			made[rootOf[i]] = append(made[rootOf[i]], worker)
		}
	}
	return made
}
