package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// What ranks bring to Agree decides about its error, the same on all ranks, and the group lives on.
func TestAgree(t *testing.T) {
	type facts = []ccl.Fact
	long := strings.Repeat("\n\"x\x00\xff ", 10_000)
	everyWorld(t, func(t *testing.T, connect connector) {
		for name, c := range map[string]struct {
			facts [3]facts
			want  string
		}{
			"equal":            {[3]facts{{{"a", "1"}, {"b", long}}, {{"a", "1"}, {"b", long}}, {{"a", "1"}, {"b", long}}}, ""},
			"no facts":         {[3]facts{}, ""},
			"another order":    {[3]facts{{{"a", "1"}, {"b", "2"}}, {{"b", "2"}, {"a", "1"}}, {{"a", "1"}, {"b", "2"}}}, ""},
			"a value":          {[3]facts{{{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "3"}}, {{"a", "1"}, {"b", "2"}}}, "ranks disagree on b: 2 on ranks 0, 2; 3 on rank 1"},
			"the first of two": {[3]facts{{{"b", "1"}, {"a", "2"}}, {{"b", "2"}, {"a", "3"}}, {{"b", "3"}, {"a", "4"}}}, "ranks disagree on b: 1 on rank 0; 2 on rank 1; 3 on rank 2"},
			"none":             {[3]facts{{{"a", "1"}}, {}, {{"a", "1"}, {"b", ""}}}, "ranks disagree on a: 1 on ranks 0, 2; none on rank 1"},
			"one more":         {[3]facts{{{"a", ""}}, {{"a", ""}}, {{"a", ""}, {"b", ""}}}, "ranks disagree on b: none on ranks 0, 1;  on rank 2"},
			"the end of a long one": {[3]facts{{{"a", long + "1"}}, {{"a", long + "2"}}, {{"a", long + "1"}}},
				"ranks disagree on a: " + long + "1 on ranks 0, 2; " + long + "2 on rank 1"},
		} {
			t.Run(name, func(t *testing.T) {
				g := group(t, connect, 3)
				for r, err := range each(3, func(r int) error { return ccl.Agree(bg, g[r], nil, c.facts[r], ccl.WithKey("facts")) }) {
					if c.want == "" {
						assert.NoError(t, err)
						continue
					}
					assert.IsType(t, &ccl.MismatchError{}, err)
					assert.EqualError(t, err, c.want, "rank %d", r)
				}
				require.NoError(t, errors.Join(each(3, func(r int) error { return sum(g[r], 3) })...))
			})
		}
	})
}

// An error that a rank brings is the cause on that rank and a text on the others, and the group
// lives on.
func TestRejectedError(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 4)
		first, second := fmt.Errorf("first: %w", context.DeadlineExceeded), errors.New("second")
		for _, c := range []struct {
			bring, want [4]error
			ranks       [4][]int
		}{
			{[4]error{nil, first, nil, nil}, [4]error{nil, first, nil, nil}, [4][]int{{1}, {1}, {1}, {1}}},
			{[4]error{nil, first, second, first}, [4]error{nil, first, second, first}, [4][]int{{1, 3}, {1, 3}, {2}, {1, 3}}},
			{[4]error{first, first, first, first}, [4]error{first, first, first, first}, [4][]int{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}}},
		} {
			for _, call := range []func(r int) error{
				func(r int) error { return ccl.Agree(bg, g[r], c.bring[r], []ccl.Fact{{Name: "a", Value: "1"}}) },
				func(r int) error { _, err := ccl.Exchange(bg, g[r], c.bring[r], []int{1, 2}); return err },
			} {
				for r, err := range each(4, call) {
					var rejected *ccl.RejectedError
					require.ErrorAs(t, err, &rejected)
					assert.Equal(t, c.ranks[r], rejected.Ranks)
					if c.want[r] != nil {
						assert.Equal(t, c.want[r], rejected.Err)
					} else {
						assert.EqualError(t, rejected.Err, "first: context deadline exceeded")
						assert.NotErrorIs(t, err, context.DeadlineExceeded, "a text has no cause")
					}
				}
			}
		}

		long := errors.New(strings.Repeat("é", 1000) + "x")
		for r, err := range each(4, func(r int) error { return ccl.Agree(bg, g[r], []error{long, nil, nil, nil}[r], nil) }) {
			want := "rank 0: " + strings.Repeat("é", 512)
			if r == 0 {
				want = "rank 0: " + long.Error()
			}
			assert.EqualError(t, err, want)
		}
		for _, text := range []string{"", "\xff\xfe", strings.Repeat("\xff", 2000)} {
			for r, err := range each(4, func(r int) error { return ccl.Agree(bg, g[r], []error{nil, nil, errors.New(text), nil}[r], nil) }) {
				var rejected *ccl.RejectedError
				require.ErrorAs(t, err, &rejected, "rank %d, %q", r, text)
				assert.Equal(t, []int{2}, rejected.Ranks)
			}
		}
		require.NoError(t, errors.Join(each(4, func(r int) error { return sum(g[r], 4) })...))
	})
}

// A call that needs its result cannot be asynchronous: it is refused, and the group lives on.
func TestExchangeWithWork(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, size := range []int{1, 3} {
			g := group(t, connect, size)
			for r, err := range each(size, func(r int) error {
				_, err := ccl.Exchange(bg, g[r], nil, []int{r}, ccl.WithWork(new(ccl.Work)))
				return err
			}) {
				require.ErrorAs(t, err, new(*ccl.InvalidArgumentError), "rank %d", r)
				require.ErrorContains(t, err, "WithWork")
			}
			require.NoError(t, errors.Join(each(size, func(r int) error { return sum(g[r], size) })...))
		}
	})
}

// All ranks get the numbers of all.
func TestExchange(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		for r, err := range each(3, func(r int) error {
			all, err := ccl.Exchange(bg, g[r], nil, []int{r, -10 * r})
			assert.Equal(t, []int{0, 0, 1, -10, 2, -20}, all)
			none, noneErr := ccl.Exchange(bg, g[r], nil, nil)
			assert.Empty(t, none)
			return errors.Join(err, noneErr)
		}) {
			assert.NoError(t, err, "rank %d", r)
		}
	})
	_, err := ccl.Exchange(bg, nil, nil, []int{1})
	require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
	require.ErrorIs(t, ccl.Agree(bg, nil, nil, nil), ccl.ErrInvalidCommunicator)
}
