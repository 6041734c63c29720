package rowmajor

import (
	"slices"
	"testing"
)

// The last dimension is the fastest, and the two functions are each other's inverse.
func TestIndexAndRank(t *testing.T) {
	if got := Index(7, []int{2, 3, 2}); !slices.Equal(got, []int{1, 0, 1}) {
		t.Errorf("Index(7) of 2 x 3 x 2 is %d", got)
	}
	if got := Index(0, nil); len(got) != 0 {
		t.Errorf("Index(0) without dimensions is %d", got)
	}
	for _, shape := range [][]int{{1}, {5}, {2, 3}, {1, 4, 1}, {3, 2, 2, 2}} {
		n := 1
		for _, extent := range shape {
			n *= extent
		}
		for rank := range n {
			if got := Rank(Index(rank, shape), shape); got != rank {
				t.Errorf("rank %d of %d becomes %d", rank, shape, got)
			}
		}
	}
}
