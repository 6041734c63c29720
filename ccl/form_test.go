package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// Groups may overlap, be equal, or have the same ranks in another order. A rank is in any number
// of them.
func TestForm(t *testing.T) {
	lists := [][]int{{3, 0, 2}, {0, 3, 2}, {3, 0, 2}, {1}, {4, 3, 2, 1, 0}, {0, 1, 2, 3, 4}, {2, 4}}
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 5)
		require.NoError(t, errors.Join(each(5, func(r int) error {
			none, err := g[r].Form(bg, nil)
			if err != nil || len(none) != 0 {
				return fmt.Errorf("%v, %w", none, err)
			}
			made, err := g[r].Form(bg, lists)
			if err != nil {
				return err
			}
			for range 2 {
				for i, list := range lists {
					if !slices.Contains(list, r) {
						if made[i] != nil {
							return fmt.Errorf("rank %d has group %d", r, i)
						}
						continue
					}
					if err := members(closing(t, made[i]), r, list...); err != nil {
						return err
					}
				}
			}
			inner, err := made[4].Form(bg, [][]int{{0, 1}, {4, 1}}) // lists have the group's ranks
			if err != nil {
				return err
			}
			for i, list := range [][]int{{4, 3}, {0, 3}} {
				if slices.Contains(list, r) {
					err = errors.Join(err, members(closing(t, inner[i]), r, list...))
				}
			}
			return errors.Join(err, sum(g[r], 10))
		})...))
	})
}

// If ranks pass different lists, all get the first that differs, and no group is made.
func TestFormMismatch(t *testing.T) {
	long := make([]int, 60)
	for i := range long {
		long[i] = i
	}
	for want, lists := range map[string][2][][]int{
		"list 1: [1 0] on rank 0; [0 1] on rank 1": {{{0}, {1, 0}, {1}}, {{0}, {0, 1}, {0}}},
		"list 1: none on rank 0; [0] on rank 1":    {{{0}}, {{0}, {0}}},
		"list 0: [0 1] on rank 0; [0] on rank 1":   {{{0, 1}}, {{0}, {1}}},
		"list 0: none on rank 0; [0] on rank 1":    {nil, {{0}}},
	} {
		everyWorld(t, func(t *testing.T, connect connector) {
			g := group(t, connect, 2)
			for _, err := range each(2, func(r int) error { _, err := g[r].Form(bg, lists[r]); return err }) {
				var m *ccl.MismatchError
				require.ErrorAs(t, err, &m)
				require.EqualError(t, m, "ranks disagree on "+want)
			}
		})
	}
}

// Wrong lists are rejected on every rank, and the group lives on.
func TestFormRejects(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		for want, lists := range map[string][][]int{
			"form: list 1: the group has no ranks":                     {{0}, {}},
			"form: list 0: 2 is not a rank of a group of 2 (0 to 1)":   {{0, 2}},
			"form: list 0: -1 is not a rank of a group of 2 (0 to 1)":  {{-1}},
			"form: list 2: rank 0 is named twice":                      {{0}, {1}, {0, 1, 0}},
			"form: 65537 lists: at most 65536 groups are made at once": slices.Repeat([][]int{{0}}, 1<<16+1),
		} {
			for _, err := range each(2, func(r int) error { _, err := g[r].Form(bg, lists); return err }) {
				var bad *ccl.InvalidArgumentError
				require.ErrorAs(t, err, &bad)
				require.ErrorContains(t, err, want)
			}
		}
		allSum(t, g, 10)
	})
}

// If a rank cannot set up one of its groups, the members of that and of its later groups get an
// error, and its earlier groups are closed.
func TestFormHalfway(t *testing.T) {
	lists := [][]int{{0, 1}, {1, 2}, {3, 1}}
	stop := errors.New("the user pressed stop")
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, func(n int) ([]transport.Endpoint, error) {
			eps, err := connect(n)
			calls := 0
			eps[1] = seatless{eps[1], func(ctx context.Context, _ transport.Endpoint) context.Context {
				if calls++; calls == 2 {
					cancelled, cancel := context.WithCancelCause(ctx)
					cancel(stop)
					return cancelled
				}
				return ctx
			}}
			return eps, err
		}, 4)
		made := make([][]*ccl.Communicator, 4)
		errs := each(4, func(r int) (err error) { made[r], err = g[r].Form(bg, lists, ccl.WithLabel("halves")); return err })
		require.ErrorIs(t, errs[1], stop)
		require.Nil(t, made[1])
		for _, r := range []int{2, 3} {
			var aborted *transport.AbortedError
			require.ErrorAs(t, errs[r], &aborted)
			require.ErrorContains(t, errs[r], stop.Error())
			require.Equal(t, 1, strings.Count(errs[r].Error(), "initialization of"), "%v", errs[r])
			require.ErrorContains(t, errs[r], `group "halves" of ranks 1, 2, made by form, call 1: `, "it says which group could not be made")
			require.NotContains(t, errs[r].Error(), `("halves"`, "the name of the group has it")
		}
		var lost *transport.PeerLostError
		if errs[0] == nil { // it was there before rank 1 gave up
			defer made[0][0].Close()
			errs[0] = made[0][0].Barrier(bg)
		}
		require.ErrorAs(t, errs[0], &lost)
		require.Equal(t, 1, lost.Rank)
		allSum(t, g, 10)
	})
}

// A rank that rejects a call for a mistake of its own gets that error. If all do, the group lives
// on; otherwise the others get it as well.
func TestReject(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		mine := errors.New("axis 7 of 2")
		for _, err := range each(3, func(r int) error { return g[r].Reject(bg, mine) }) {
			require.ErrorIs(t, err, mine)
		}
		allSum(t, g, 10)
		errs := each(3, func(r int) error {
			if r == 1 {
				return g[r].Reject(bg, mine)
			}
			_, err := g[r].Form(bg, nil)
			return err
		})
		require.ErrorIs(t, errs[1], mine)
		for _, r := range []int{0, 2} {
			var m *ccl.MismatchError
			require.ErrorAs(t, errs[r], &m)
			require.Equal(t, "arguments", m.Field)
			require.ErrorContains(t, errs[r], mine.Error())
		}
		err := g[0].Reject(bg, mine)
		require.ErrorIs(t, err, mine)
		require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
		require.Regexp(t, "^axis 7 of 2 "+
			`\(call [34] at LINE\)$`, withoutLines(err)) // Form was call 3, unless ranks 1 and 2 had failed before it started
		err = g[0].Reject(bg, errors.New("axis 7"))
		require.ErrorContains(t, err, "axis 7; and ccl: reject")
		require.ErrorContains(t, err, "rejected on rank 1 (axis 7 of 2)")
		require.ErrorIs(t, (*ccl.Communicator)(nil).Reject(bg, mine), mine)
	})
}
