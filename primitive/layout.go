package primitive

import (
	"slices"

	"github.com/goccl/goccl/ccl"
)

// The arithmetic of tensors that are divided among workers. Nothing here communicates.

// box returns the part of a tensor of a shape that the worker with an index has, where the tensor
// is divided among workers of the shape workers.
func box(shape, index, workers []int) []ccl.Range {
	part := make([]ccl.Range, len(shape))
	for d, extent := range shape {
		part[d].Lo, part[d].Hi = ccl.BlockRange(extent, index[d], workers[d])
	}
	return part
}

// intersect returns what two boxes have in common; it is empty if some range is.
func intersect(a, b []ccl.Range) []ccl.Range {
	both := make([]ccl.Range, len(a))
	for d := range a {
		both[d].Lo = max(a[d].Lo, b[d].Lo)
		both[d].Hi = max(both[d].Lo, min(a[d].Hi, b[d].Hi))
	}
	return both
}

// relative returns a box in coordinates of another that contains it.
func relative(part, whole []ccl.Range) []ccl.Range {
	moved := slices.Clone(part)
	for d := range moved {
		moved[d].Lo -= whole[d].Lo
		moved[d].Hi -= whole[d].Lo
	}
	return moved
}

// extents returns the shape of a box.
func extents(part []ccl.Range) []int {
	shape := make([]int, len(part))
	for d, r := range part {
		shape[d] = r.Hi - r.Lo
	}
	return shape
}
