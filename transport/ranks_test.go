package transport

import "testing"

func TestRanksText(t *testing.T) {
	for _, c := range []struct {
		ranks []int
		want  string
	}{
		{[]int{3}, "rank 3"},
		{[]int{0, 2}, "ranks 0, 2"},
		{[]int{0, 1}, "ranks 0, 1"},
		{[]int{0, 1, 2}, "ranks 0-2"},
		{[]int{0, 2, 3, 4, 7, 8}, "ranks 0, 2-4, 7, 8"},
	} {
		if got := RanksText(c.ranks); got != c.want {
			t.Errorf("%v: got %q, want %q", c.ranks, got, c.want)
		}
	}
}
