package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Blocks overlap if they share an element; empty ones do not. Packed blocks are in rank order.
func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		counts, displs []int
		a, b           int
		overlap        bool
		packed         bool
	}{
		{[]int{2, 3}, nil, 0, 0, false, true},
		{[]int{2, 3}, []int{0, 2}, 0, 0, false, true},
		{[]int{2, 0, 3}, []int{0, 9, 2}, 0, 0, false, true},
		{[]int{2, 3}, []int{0, 3}, 0, 0, false, false},
		{[]int{2, 3}, []int{3, 0}, 0, 0, false, false},
		{[]int{2, 3}, []int{2, 0}, 0, 1, true, false},
		{[]int{1, 2, 3}, []int{9, 1, 2}, 1, 2, true, false},
		{[]int{4, 0, 4}, []int{4, 5, 0}, 0, 0, false, false},
	} {
		a, b, overlap := Overlap(c.counts, c.displs)
		require.Equal(t, []any{c.a, c.b, c.overlap, c.packed}, []any{a, b, overlap, Packed(c.counts, c.displs)}, "%v at %v", c.counts, c.displs)
	}
}

// Rank 0 sends 1 and 2 elements to ranks 0 and 1, and rank 1 sends 3 and 4.
func TestMatrix(t *testing.T) {
	m := Matrix{1, 2, 1, 3, 3, 4, 2, 4}
	all, out, in := m.Sums(2)
	require.Equal(t, []int{10, 7, 6}, []int{all, out, in})
	_, _, ok := m.Disagreement(2)
	require.False(t, ok)
	m[3] = 5 // rank 0 expects them of rank 1
	from, to, ok := m.Disagreement(2)
	require.Equal(t, []any{1, 0, true}, []any{from, to, ok})
}
