package agree_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
)

// everyRank runs f on each rank of groups of that size, and one more call of the group, which has to
// be intact.
func everyRank(t *testing.T, size int, f func(ctx context.Context, c *ccl.Communicator)) {
	partitiontest.Workers(t, size, func(ctx context.Context, world *partition.Partition) error {
		f(ctx, world.Communicator())
		x := []int{1}
		if err := ccl.AllReduce(ctx, world.Communicator(), x, x, ccl.Sum); err != nil || x[0] != size {
			return fmt.Errorf("a sum after it is %d: %w", x, err)
		}
		return nil
	})
}

// What ranks bring to Compare decides about its error, the same on all ranks, and the group lives
// on.
func TestCompare(t *testing.T) {
	type facts = []agree.Fact
	long := strings.Repeat("\n\"x\x00\xff ", 10_000)
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
			everyRank(t, 3, func(ctx context.Context, comm *ccl.Communicator) {
				err := agree.Compare(ctx, comm, nil, c.facts[comm.Rank()], ccl.WithKey("facts"))
				if c.want == "" {
					assert.NoError(t, err)
					return
				}
				assert.IsType(t, &ccl.MismatchError{}, err)
				assert.EqualError(t, err, c.want, "rank %d", comm.Rank())
			})
		})
	}
}

// An error that a rank brings is the cause on that rank and a text on the others, and the group
// lives on.
func TestRejectedError(t *testing.T) {
	first, second := fmt.Errorf("first: %w", context.DeadlineExceeded), errors.New("second")
	long := errors.New(strings.Repeat("é", 1000) + "x")
	everyRank(t, 4, func(ctx context.Context, comm *ccl.Communicator) {
		r := comm.Rank()
		for _, c := range []struct {
			errs  [4]error
			ranks [4][]int
		}{
			{[4]error{nil, first, nil, nil}, [4][]int{{1}, {1}, {1}, {1}}},
			{[4]error{nil, first, second, first}, [4][]int{{1, 3}, {1, 3}, {2}, {1, 3}}},
			{[4]error{first, first, first, first}, [4][]int{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}}},
		} {
			_, exchanged := agree.Exchange(ctx, comm, c.errs[r], []int{1, 2})
			for _, err := range []error{exchanged, agree.Compare(ctx, comm, c.errs[r], []agree.Fact{{Name: "a", Value: "1"}})} {
				rejected, ok := errors.AsType[*agree.RejectedError](err)
				if !assert.True(t, ok, "%v", err) {
					return
				}
				assert.Equal(t, c.ranks[r], rejected.Ranks)
				if c.errs[r] != nil {
					assert.Equal(t, c.errs[r], rejected.Err)
				} else {
					assert.EqualError(t, rejected.Err, "first: context deadline exceeded")
					assert.NotErrorIs(t, err, context.DeadlineExceeded, "a text has no cause")
				}
			}
		}

		want := "rank 0: " + strings.Repeat("é", 512)
		if r == 0 {
			want = "rank 0: " + long.Error()
		}
		assert.EqualError(t, agree.Compare(ctx, comm, [4]error{long}[r], nil), want)
		for _, text := range []string{"", "\xff\xfe", strings.Repeat("\xff", 2000)} {
			err := agree.Compare(ctx, comm, [4]error{2: errors.New(text)}[r], nil)
			rejected, ok := errors.AsType[*agree.RejectedError](err)
			if assert.True(t, ok, "rank %d, %q: %v", r, text, err) {
				assert.Equal(t, []int{2}, rejected.Ranks)
			}
		}
	})
}

// A call that needs its result cannot be asynchronous: it is refused, and the group lives on.
func TestWithWork(t *testing.T) {
	for _, size := range []int{1, 3} {
		everyRank(t, size, func(ctx context.Context, c *ccl.Communicator) {
			for _, wrap := range []func(...ccl.CallOption) ccl.CallOption{
				func(opts ...ccl.CallOption) ccl.CallOption { return opts[0] }, ccl.WithTorchNames,
			} {
				var w ccl.Work
				opts := []ccl.CallOption{ccl.WithLabel("facts"), wrap(ccl.WithWork(&w)), ccl.WithKey("facts")}
				_, exchanged := agree.Exchange(ctx, c, nil, []int{1}, opts...)
				for _, err := range []error{exchanged, agree.Compare(ctx, c, nil, []agree.Fact{{Name: "a", Value: "b"}}, opts...)} {
					assert.ErrorAs(t, err, new(*ccl.InvalidArgumentError))
					assert.ErrorContains(t, err, "WithWork")
				}
				assert.Error(t, w.Wait(ctx), "no call was started")
				assert.NoError(t, agree.Compare(ctx, c, nil, nil, wrap(ccl.WithWork(nil))), "it has no effect")
			}
		})
	}
}

// All ranks get the numbers of all.
func TestExchange(t *testing.T) {
	everyRank(t, 3, func(ctx context.Context, c *ccl.Communicator) {
		all, err := agree.Exchange(ctx, c, nil, []int{c.Rank(), -10 * c.Rank()})
		assert.NoError(t, err)
		assert.Equal(t, []int{0, 0, 1, -10, 2, -20}, all)
		all, err = agree.Exchange(ctx, c, nil, nil)
		assert.NoError(t, err)
		assert.Empty(t, all)
	})
	_, err := agree.Exchange(t.Context(), nil, nil, []int{1})
	require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
	require.ErrorIs(t, agree.Compare(t.Context(), nil, nil, nil), ccl.ErrInvalidCommunicator)
}

// Difference groups the ranks of the job by their values, in the order of the group in which the
// values first appear.
func TestDifference(t *testing.T) {
	everyRank(t, 3, func(ctx context.Context, c *ccl.Communicator) {
		reversed, err := c.Split(ctx, 0, -c.Rank())
		if !assert.NoError(t, err) {
			return
		}
		defer reversed.Close()
		assert.NoError(t, agree.Difference(reversed, "shape", nil))
		assert.NoError(t, agree.Difference(reversed, "shape", map[int]string{0: "[2]", 2: "[2]"}))
		assert.Equal(t, &ccl.MismatchError{Field: "shape", Values: []ccl.MismatchValue{
			{Value: "[3]", Ranks: []int{2}}, {Value: "[2]", Ranks: []int{0, 1}},
		}}, agree.Difference(reversed, "shape", map[int]string{0: "[3]", 1: "[2]", 2: "[2]"}))
	})
}
