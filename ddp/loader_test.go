package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// epochErrors returns the errors of an epoch's batches.
func epochErrors[B any](l *ddp.Loader[B], from int) (errs []error) {
	for _, err := range l.Epoch(bg, 0, from) {
		errs = append(errs, err)
	}
	return errs
}

// A panic or runtime.Goexit in Load is an error of its rank, which says where. The batches before
// it arrive, and the process and the group go on.
func TestLoadEndsItsGoroutine(t *testing.T) {
	broken := errors.New("the disk is broken")
	_, _, line, _ := runtime.Caller(0)
	for name, c := range map[string]struct {
		end  func(i int)
		text string
		is   error
	}{
		"panic":    {func(int) { panic("no such sample") }, fmt.Sprintf("ddp: Loader.Load panicked at ddp/loader_test.go:%d: no such sample", line+6), nil},
		"error":    {func(int) { panic(broken) }, fmt.Sprintf("ddp: Loader.Load panicked at ddp/loader_test.go:%d: the disk is broken", line+7), broken},
		"index":    {func(i int) { clear(make([]int, i)[i+1:]) }, fmt.Sprintf("ddp: Loader.Load panicked at ddp/loader_test.go:%d: runtime error: slice bounds out of range [%d:%d]", line+8, 5, 4), nil},
		"Goexit":   {func(int) { runtime.Goexit() }, "ddp: Loader.Load ended its goroutine by runtime.Goexit and did not return", dist.ErrGoexit},
		"FailNow":  {func(int) { new(testing.T).SkipNow() }, "ddp: Loader.Load ended its goroutine by runtime.Goexit and did not return", dist.ErrGoexit},
		"deferred": {func(int) { defer func() { panic("late") }(); runtime.Goexit() }, fmt.Sprintf("ddp: Loader.Load panicked at ddp/loader_test.go:%d: late", line+11), nil},
	} {
		t.Run(name, func(t *testing.T) {
			all(t, 2, func(rank int) error {
				l := ddp.Loader[int]{Sampler: ddp.Sampler{Samples: 12, Ranks: 2, Rank: rank, InOrder: true}, Batch: 1, Load: func(_ context.Context, indices []int) (int, error) {
					if rank == 0 && indices[0] == 4 {
						c.end(indices[0])
					}
					return 0, nil
				}}
				errs := epochErrors(&l, 0)
				if rank == 1 {
					return errors.Join(equal("errors", fmt.Sprint(errs), fmt.Sprint(make([]error, 6))), dist.Barrier())
				}
				if len(errs) != 3 || errs[0] != nil || errs[1] != nil || errs[2] == nil || errs[2].Error() != c.text {
					return fmt.Errorf("the errors are %v", errs)
				}
				if c.is != nil && !errors.Is(errs[2], c.is) {
					return fmt.Errorf("errors.Is does not find %w", c.is)
				}
				return dist.Barrier()
			})
		})
	}
}

// A loader or sampler that is wrong is an error of Check and of Epoch, and has no steps: nothing
// panics.
func TestWrongLoader(t *testing.T) {
	load := func(context.Context, []int) (int, error) { return 0, nil }
	right := ddp.Sampler{Samples: 7, Ranks: 3, Rank: 1}
	with := func(change func(s *ddp.Sampler)) ddp.Sampler {
		s := right
		change(&s)
		return s
	}
	for _, c := range []struct {
		loader ddp.Loader[int]
		text   string
	}{
		{ddp.Loader[int]{Sampler: with(func(s *ddp.Sampler) { s.Ranks = 0 }), Batch: 1, Load: load}, "Sampler: Ranks is 0, and must be at least 1: set Ranks and Rank, or Group"},
		{ddp.Loader[int]{Sampler: with(func(s *ddp.Sampler) { s.Ranks = -3 }), Batch: 1, Load: load}, "Sampler: Ranks is -3, and must be at least 1: set Ranks and Rank, or Group"},
		{ddp.Loader[int]{Sampler: with(func(s *ddp.Sampler) { s.Rank = -1 }), Batch: 1, Load: load}, "Sampler: Rank is -1 of 3 Ranks, and must be at least 0 and less than Ranks"},
		{ddp.Loader[int]{Sampler: with(func(s *ddp.Sampler) { s.Rank = 3 }), Batch: 1, Load: load}, "Sampler: Rank is 3 of 3 Ranks, and must be at least 0 and less than Ranks"},
		{ddp.Loader[int]{Sampler: with(func(s *ddp.Sampler) { s.Samples = -1 }), Batch: 1, Load: load}, "Sampler: Samples is -1, and must be at least 0"},
		{ddp.Loader[int]{Sampler: with(func(s *ddp.Sampler) { s.DropLast, s.Uneven = true, true }), Batch: 1, Load: load}, "Sampler: DropLast and Uneven are set: the one leaves out the last samples, the other does not; set one of them"},
		{ddp.Loader[int]{Sampler: right, Load: load}, "Loader: Batch is 0, and must be at least 1"},
		{ddp.Loader[int]{Sampler: right, Batch: math.MinInt, Load: load}, fmt.Sprintf("Loader: Batch is %d, and must be at least 1", math.MinInt)},
		{ddp.Loader[int]{Sampler: right, Batch: 1}, "Loader: Load is nil, and must be a function that returns a batch"},
	} {
		want := "ddp: " + c.text
		require.EqualError(t, c.loader.Check(), want)
		require.ErrorAs(t, c.loader.Check(), new(*ccl.InvalidArgumentError))
		require.Zero(t, c.loader.Steps())
		errs := epochErrors(&c.loader, 0)
		require.Len(t, errs, 1, want)
		require.EqualError(t, errs[0], want)
		if c.loader.Sampler != right {
			require.EqualError(t, c.loader.Sampler.Check(), want)
			require.Zero(t, c.loader.Sampler.Len())
			require.PanicsWithError(t, want, func() { c.loader.Sampler.Indices(0) })
		}
	}
	l := ddp.Loader[int]{Sampler: right, Batch: 1, Load: load}
	require.NoError(t, l.Check())
	require.EqualError(t, errors.Join(epochErrors(&l, -1)...), "ddp: Loader: the first step is -1, and must be at least 0")
	for _, err := range l.Epoch(nil, 0, 0) { //nolint:staticcheck // it is what is tried
		require.EqualError(t, err, "ddp: Loader: the context is nil: use context.Background")
	}
}

// Numbers near the largest of an int do not overflow.
func TestLargeNumbersOfSamples(t *testing.T) {
	for _, batch := range []int{1, 7, 8, math.MaxInt - 1, math.MaxInt} {
		l := ddp.Loader[[]int]{Sampler: ddp.Sampler{Samples: 8, Ranks: 1, InOrder: true}, Batch: batch, Ahead: math.MaxInt, Load: func(_ context.Context, i []int) ([]int, error) { return i, nil }}
		want := slices.Collect(slices.Chunk([]int{0, 1, 2, 3, 4, 5, 6, 7}, batch))
		require.Equal(t, len(want), l.Steps())
		var got [][]int
		for b, err := range l.Epoch(t.Context(), 0, 0) {
			require.NoError(t, err)
			got = append(got, b)
		}
		require.Equal(t, want, got)
		require.Empty(t, epochErrors(&l, math.MaxInt), "there is no such step")
	}
	require.Equal(t, math.MaxInt/2+1, ddp.Sampler{Samples: math.MaxInt, Ranks: 2}.Len())
	require.Equal(t, math.MaxInt/2, ddp.Sampler{Samples: math.MaxInt, Ranks: 2, DropLast: true}.Len())
	last := ddp.Sampler{Samples: math.MaxInt, Ranks: math.MaxInt - 1, Rank: math.MaxInt - 2, InOrder: true}
	require.Equal(t, []int{math.MaxInt - 2, math.MaxInt - 3}, last.Indices(0))
	require.Equal(t, []int{0}, ddp.Sampler{Samples: 1, Ranks: math.MaxInt, Rank: math.MaxInt - 1}.Indices(0))
}

// A sampler takes ranks and rank from its group, which may have its ranks in another order, and
// refuses others beside it.
func TestSamplerOfGroup(t *testing.T) {
	all(t, 3, func(rank int) error {
		group, err := dist.Split(0, -rank)
		if err != nil {
			return err
		}
		got := ddp.Sampler{Samples: 10, Group: group, Seed: 3}
		want := ddp.Sampler{Samples: 10, Ranks: 3, Rank: 2 - rank, Seed: 3}
		if err := errors.Join(got.Check(), equal("indices", fmt.Sprint(got.Indices(2)), fmt.Sprint(want.Indices(2)))); err != nil {
			return err
		}
		if err := dist.DestroyProcessGroup(dist.WithGroup(group)); err != nil {
			return err
		}
		if err := equal("length", got.Len(), 4); err != nil {
			return fmt.Errorf("after the end of the group: %w", err)
		}
		got.Ranks = 3
		return equal("error", fmt.Sprint(got.Check()), "ddp: Sampler: Group is set, and Ranks is 3 and Rank 0: set either")
	})
}
