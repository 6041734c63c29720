package partition

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/rowmajor"
)

// The product of a shape is the number of workers; the check does not overflow.
func TestCheckShape(t *testing.T) {
	for _, good := range [][]int{{12}, {2, 3, 2}, {1, 12, 1}, {3, 4}} {
		require.NoError(t, checkShape(good, 12))
	}
	require.NoError(t, checkShape(nil, 1))
	for _, bad := range [][]int{nil, {}, {11}, {13}, {0, 12}, {-3, -4}, {1 << 62, 1 << 62, 12}, {12, 0}} {
		require.ErrorContains(t, checkShape(bad, 12), "is not 12, the number of workers")
	}
}

// No dimension is closed to a ring.
func TestNeighborsOf(t *testing.T) {
	require.Equal(t, []Neighbors{{None, 6}, {None, 2}, {None, 1}}, neighborsOf(0, []int{2, 3, 2}))
	require.Equal(t, []Neighbors{{3, None}, {7, 11}, {8, None}}, neighborsOf(9, []int{2, 3, 2}))
	require.Equal(t, []Neighbors{{None, None}}, neighborsOf(0, []int{1}))
}

// The documents' table of an all-reduction over dimensions 0 and 2 of 2 x 3 x 2.
func TestReductions(t *testing.T) {
	shape := []int{2, 3, 2}
	require.Equal(t, [][]int{{0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}}, reductions(shape, []int{0, 2}))
	require.Equal(t, reductions(shape, []int{0, 2}), reductions(shape, []int{2, 0}))
	require.Equal(t, [][]int{count(12)}, reductions(shape, []int{0, 1, 2}))
	require.Len(t, reductions(shape, nil), 12)
	require.Equal(t, [][]int{{0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}}, reductions(shape, []int{1}))
}

// The documents' tables: 1 x 3 x 1 on the workers 1, 2, 3 to 2 x 3 x 2 on 0 to 11.
func TestBroadcastGroups(t *testing.T) {
	from, err := sources([]int{1, 3, 1}, []int{2, 3, 2}, 0)
	require.NoError(t, err)
	require.Equal(t, []int{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}, from)
	x, y := []int{1, 2, 3}, count(12)
	require.Equal(t, [][]int{{1, 0, 6, 7}, {2, 3, 8, 9}, {3, 4, 5, 10, 11}}, groups(x, y, from, union(x, y)))
}

// What a worker receives depends on where it is, not on the order of workers: of the others, those
// of the source come first.
func TestGroupsOrder(t *testing.T) {
	x, y := []int{5, 2}, []int{3, 2, 5, 0}
	from, err := sources([]int{2, 1}, []int{2, 2}, 0)
	require.NoError(t, err)
	require.Equal(t, []int{0, 0, 1, 1}, from)
	require.Equal(t, [][]int{{5, 2, 3}, {2, 5, 0}}, groups(x, y, from, union(x, y)))
	require.Equal(t, []int{5, 2, 3, 0}, union(x, y))
}

func TestSources(t *testing.T) {
	for _, c := range []struct {
		from, to []int
		how      Option
		want     []int
	}{
		{[]int{1}, []int{4}, 0, []int{0, 0, 0, 0}},
		{[]int{4}, []int{4}, 0, []int{0, 1, 2, 3}},
		{[]int{2}, []int{3, 2}, 0, []int{0, 1, 0, 1, 0, 1}}, // padded on the left
		{[]int{3, 1}, []int{3, 2}, 0, []int{0, 0, 1, 1, 2, 2}},
		{[]int{1, 2}, []int{2, 2}, 0, []int{0, 1, 0, 1}},
		{[]int{}, []int{2, 2}, 0, []int{0, 0, 0, 0}},
		{[]int{2, 3}, []int{3, 2}, TransposeSource, []int{0, 1, 2, 3, 4, 5}}, // the order of ranks stays
		{[]int{2, 3}, []int{3, 2}, TransposeDest, []int{0, 1, 2, 3, 4, 5}},
		{[]int{2, 2, 1}, []int{3, 2, 2}, TransposeSource, []int{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}},
		{[]int{2, 2}, []int{2, 2, 3}, TransposeDest, []int{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}},
		{[]int{2, 3}, []int{2, 3}, TransposeSource | TransposeDest, []int{0, 1, 2, 3, 4, 5}},
		{[]int{1, 3}, []int{3, 2}, TransposeSource, []int{0, 0, 1, 1, 2, 2}},
		{[]int{3}, []int{3, 2}, TransposeDest, []int{0, 0, 1, 1, 2, 2}}, // reversed, then padded
	} {
		got, err := sources(c.from, c.to, c.how)
		require.NoError(t, err, "%v", c)
		require.Equal(t, c.want, got, "%v", c)
	}
	for want, c := range map[string]struct {
		from, to []int
		how      Option
	}{
		"the shape [1 2 2] has more dimensions than [2 2]":                                          {[]int{1, 2, 2}, []int{2, 2}, 0},
		"the shape [2] cannot be stretched to [1]: in dimension 0 of 1, 2 is neither 1 nor 1":       {[]int{2}, []int{1}, 0},
		"the shape [3] cannot be stretched to [3 2]: in dimension 1 of 2, 3 is neither 1 nor 2":     {[]int{3}, []int{3, 2}, 0},
		"the shape [3 2] cannot be stretched to [2 3]: in dimension 0 of 2, 3 is neither 1 nor 2":   {[]int{2, 3}, []int{2, 3}, TransposeSource},
		"the shape [2 1] cannot be stretched to [2 1 2]: in dimension 1 of 3, 2 is neither 1 nor 1": {[]int{2, 1}, []int{2, 1, 2}, 0},
	} {
		_, err := sources(c.from, c.to, c.how)
		require.EqualError(t, err, want)
	}
}

// By the definition: a destination gets data from the source whose index is the same in every
// dimension, or 0 where the source has 1. Every source is used.
func TestSourcesOfAllShapes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		to := make([]int, 1+random.IntN(4))
		for d := range to {
			to[d] = 1 + random.IntN(3)
		}
		from := slices.Clone(to[random.IntN(len(to)):])
		for d := range from {
			if random.IntN(2) == 0 {
				from[d] = 1
			}
		}
		got, err := sources(from, to, 0)
		require.NoError(t, err)
		used := make([]bool, product(from))
		for rank, source := range got {
			used[source] = true
			at, has := rowmajor.Index(rank, to), rowmajor.Index(source, from)
			for d := range from {
				want := at[len(to)-len(from)+d]
				if from[d] == 1 {
					want = 0
				}
				require.Equal(t, want, has[d])
			}
		}
		require.NotContains(t, used, false)
	}
}

// The rule of DistDL: a worker's colour is its position among the indices in the dimensions that
// match, row-major, or column-major on the reversed index of a transposed partition. Data goes from
// a worker of the source to those of its colour.
func TestColours(t *testing.T) {
	// colour returns the colour of a rank, where the partition has been padded to the number of
	// dimensions.
	colour := func(rank int, shape []int, isTransposed bool, matches []bool) (c int) {
		index, shape := rowmajor.Index(rank, shape), slices.Clone(shape)
		if isTransposed {
			slices.Reverse(index)
			slices.Reverse(shape)
		}
		pad := len(matches) - len(shape)
		for i := range matches {
			d := i
			if isTransposed {
				d = len(matches) - 1 - i // the first dimension is the fastest
			}
			if d >= pad && matches[d] {
				c = c*shape[d-pad] + index[d-pad]
			}
		}
		return c
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		how := Option(random.IntN(4))
		dest := make([]int, 1+random.IntN(4)) // as it is compared
		for d := range dest {
			dest[d] = 1 + random.IntN(3)
		}
		source := slices.Clone(dest[random.IntN(len(dest)):])
		matches := slices.Repeat([]bool{true}, len(dest))
		for d := range matches {
			pad := len(dest) - len(source)
			if d >= pad && random.IntN(2) == 0 {
				source[d-pad] = 1
			}
			matches[d] = dest[d] == 1 || d >= pad && source[d-pad] == dest[d]
		}
		if how&TransposeSource != 0 {
			slices.Reverse(source)
		}
		if how&TransposeDest != 0 {
			slices.Reverse(dest)
		}
		got, err := sources(source, dest, how)
		require.NoError(t, err)
		for rank, from := range got {
			want := colour(rank, dest, how&TransposeDest != 0, matches)
			require.Equal(t, want, colour(from, source, how&TransposeSource != 0, matches), "%v to %v, %d: rank %d", source, dest, how, rank)
		}
	}
}

func TestCheckAxes(t *testing.T) {
	require.NoError(t, checkAxes("op", []int{2, 0}, []int{1, 2, 3}))
	require.NoError(t, checkAxes("op", nil, nil))
	require.ErrorContains(t, checkAxes("op", []int{3}, []int{1, 2, 3}), "op: axis 3 is not a dimension of the shape [1 2 3] (0 to 2)")
	require.ErrorContains(t, checkAxes("op", []int{-1}, []int{1}), "axis -1")
	require.ErrorContains(t, checkAxes("op", []int{1, 0, 1}, []int{2, 2}), "axis 1 is named twice")
}
