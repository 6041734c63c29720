// Package rowmajor converts between ranks and indices.
//
// # Model
//
// The ranks of a shape are numbered row by row: the last dimension is the fastest.
//
// # Concurrency
//
// All functions are pure.
//
// # Failure
//
// Preconditions: a rank is from 0 to the product of the shape, exclusive; an index has as many
// dimensions as the shape, and lies in it.
package rowmajor

// Index returns the index of a rank.
func Index(rank int, shape []int) []int {
	index := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		index[d], rank = rank%shape[d], rank/shape[d]
	}
	return index
}

// Rank returns the rank of an index.
func Rank(index, shape []int) (rank int) {
	for d, i := range index {
		rank = rank*shape[d] + i
	}
	return rank
}
