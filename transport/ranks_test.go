package transport

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestRenumber(t *testing.T) {
	members := []int{4, 7}
	why := errors.New("why")
	for _, c := range []struct{ err, want error }{
		{&PeerLostError{Rank: 1, PID: 9}, &PeerLostError{Rank: 7, PID: 9}},
		{&TimeoutError{Missing: []int{0, 1}, By: 1, Seq: 3}, &TimeoutError{Missing: []int{4, 7}, By: 7, Seq: 3}},
		{fmt.Errorf("in a level: %w", &AbortedError{By: 0, Cause: why}), &AbortedError{By: 4, Cause: why}},
		{&PeerLostError{Rank: 8}, &PeerLostError{Rank: 8}},
		{&PeerLostError{Rank: 1, Left: []int{0, 1}}, &PeerLostError{Rank: 7, Left: []int{4, 7}}},
		{why, why},
	} {
		require.Equal(t, c.want, Renumber(c.err, members))
	}
}
