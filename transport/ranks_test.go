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
		{&PeerLostError{Rank: 1, PID: 9, Host: "b"}, &PeerLostError{Rank: 7, PID: 9, Host: "b"}},
		{&TimeoutError{Missing: []int{0, 1}, By: 1, Seq: 3, Hosts: []string{"a", ""}}, &TimeoutError{Missing: []int{4, 7}, By: 7, Seq: 3, Hosts: []string{"a", ""}}},
		{fmt.Errorf("in a level: %w", &AbortedError{By: 0, Cause: why}), &AbortedError{By: 4, Cause: why}},
		{&PeerLostError{Rank: 8}, &PeerLostError{Rank: 8}},
		{&PeerLostError{Rank: 1, Left: []int{0, 1}}, &PeerLostError{Rank: 7, Left: []int{4, 7}}},
		{why, why},
	} {
		require.Equal(t, c.want, Renumber(c.err, members))
	}
}

// Errors name the hosts of ranks that are on other ones.
func TestErrorsNameHosts(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&PeerLostError{Rank: 1, PID: 9}, "peer lost: rank 1 (pid 9) is gone"},
		{&PeerLostError{Rank: 1, PID: 9, Host: "b"}, "peer lost: rank 1 (pid 9, host b) is gone"},
		{&PeerLostError{Rank: 1, Host: "b"}, "peer lost: rank 1 (host b) has left the group"},
		{&TimeoutError{Missing: []int{1}, Hosts: []string{"b"}}, "waited for rank 1 (host b), which did not join"},
		{&TimeoutError{Missing: []int{1, 2}, Seq: 3, Hosts: []string{"b", "b"}}, "waited for ranks 1, 2 (host b), which"},
		{&TimeoutError{Missing: []int{0, 4, 5, 6}, Seq: 3, Hosts: []string{"", "c", "b", "c"}}, "waited for ranks 0, 4-6 (rank 5 on host b, ranks 4, 6 on host c), which"},
		{&TimeoutError{Behind: []int{2}, By: 1, Seq: 3, Hosts: []string{"c"}}, "rank 1 waited for rank 2 (host c) inside call 3"},
		{&TimeoutError{Behind: []int{2}, By: 1}, "rank 1 waited for rank 2 (to wait longer"},
	} {
		require.ErrorContains(t, c.err, c.want)
	}
}
