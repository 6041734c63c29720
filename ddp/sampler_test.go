package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
)

// The rules of torch's DistributedSampler, for more samples than ranks, as many, and fewer; and each sample once.
func TestSampler(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 7, 16} {
		for _, samples := range []int{0, 1, 2, 5, 7, 15, 16, 17, 100} {
			for _, inOrder := range []bool{false, true} {
				t.Run(fmt.Sprintf("ranks=%d/samples=%d/in_order=%v", ranks, samples, inOrder), func(t *testing.T) {
					const epoch = 3
					one := ddp.Sampler{Samples: samples, Ranks: 1, Seed: 9, InOrder: inOrder}
					order := one.Indices(epoch)
					sorted := slices.Sorted(slices.Values(order))
					require.Len(t, sorted, samples)
					for i, index := range sorted {
						require.Equal(t, i, index, "one rank gets every sample once")
					}
					require.Equal(t, inOrder || samples < 3, slices.IsSorted(order) || samples < 3)

					padded := slices.Clone(order) // torch's two steps: repeat, then cut
					for samples > 0 && len(padded)%ranks != 0 {
						padded = append(padded, order[:min(samples, ranks-len(padded)%ranks)]...)
					}
					for rank := range ranks {
						s := ddp.Sampler{Samples: samples, Ranks: ranks, Rank: rank, Seed: 9, InOrder: inOrder}
						want, kept := []int{}, []int{}
						for i := rank; i < len(padded); i += ranks {
							want = append(want, padded[i])
						}
						for i := rank; i < samples/ranks*ranks; i += ranks {
							kept = append(kept, order[i])
						}
						require.Equal(t, want, s.Indices(epoch), "rank %d", rank)
						require.Equal(t, len(want), s.Len())
						s.DropLast = true
						require.Equal(t, kept, s.Indices(epoch), "rank %d", rank)
						require.Equal(t, len(kept), s.Len())

						once := []int{}
						for i := rank; i < samples; i += ranks {
							once = append(once, order[i])
						}
						s.DropLast, s.Uneven = false, true
						require.Equal(t, once, s.Indices(epoch), "rank %d", rank)
						require.Equal(t, len(once), s.Len())
					}
				})
			}
		}
	}
}

func TestSamplerShuffles(t *testing.T) {
	s := ddp.Sampler{Samples: 50, Ranks: 2, Rank: 1, Seed: 4}
	require.Equal(t, s.Indices(2), s.Indices(2), "an epoch has one order")
	require.NotEqual(t, s.Indices(2), s.Indices(3), "the next epoch has another")
	next := s
	next.Seed++
	require.Equal(t, s.Indices(3), next.Indices(2), "seed and epoch are added up")
}

// A loader gives the sampler's batches in order, from any step on, and loads at most so many ahead.
func TestLoader(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		s := ddp.Sampler{Samples: r.IntN(60), Ranks: 1 + r.IntN(4), Seed: r.Uint64(), DropLast: r.IntN(2) == 0}
		s.Rank = r.IntN(s.Ranks)
		batch, ahead, epoch := 1+r.IntN(7), r.IntN(4), r.IntN(3)
		loaded, used := 0, 0
		l := ddp.Loader[[]int]{Sampler: s, Batch: batch, Ahead: ahead, Load: func(_ context.Context, indices []int) ([]int, error) {
			loaded++
			return slices.Clone(indices), nil
		}}
		from := r.IntN(l.Steps() + 1)
		want := slices.Collect(slices.Chunk(s.Indices(epoch), batch))[from:]
		synctest.Test(t, func(t *testing.T) {
			var got [][]int
			for b, err := range l.Epoch(t.Context(), epoch, from) {
				require.NoError(t, err)
				got = append(got, b)
				used++
				synctest.Wait()
				require.Equal(t, min(used+max(ahead, 1), len(want)), loaded)
			}
			require.Equal(t, len(want), len(got))
			for i := range want {
				require.Equal(t, want[i], got[i])
			}
		})
	}
}

// A loader that the program leaves, whose Load fails or whose context ends, stops.
func TestLoaderEnds(t *testing.T) {
	broken := errors.New("the file is gone")
	loads := 0
	l := ddp.Loader[int]{Sampler: ddp.Sampler{Samples: 10, Ranks: 1}, Batch: 1, Ahead: 2, Load: func(_ context.Context, i []int) (int, error) {
		if loads++; loads == 4 {
			return 0, broken
		}
		return i[0], nil
	}}
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine stays
		for range l.Epoch(t.Context(), 0, 0) {
			break
		}
		loads = 0
		var got []error
		for _, err := range l.Epoch(t.Context(), 0, 0) {
			got = append(got, err)
		}
		require.Equal(t, []error{nil, nil, nil, broken}, got)

		loads = 10
		stop := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		got = nil
		for _, err := range l.Epoch(ctx, 0, 0) {
			cancel(stop)
			got = append(got, err)
		}
		require.ErrorIs(t, got[len(got)-1], stop)
		require.Less(t, len(got), 6)
	})
	l.Batch = 0
	for _, err := range l.Epoch(t.Context(), 0, 0) {
		var wrong *ccl.InvalidArgumentError
		require.ErrorAs(t, err, &wrong)
	}
}

// A rank that does not exist has no samples.
func TestSamplerOfNoRank(t *testing.T) {
	for _, rank := range []int{-1, 3, 5} {
		s := ddp.Sampler{Samples: 7, Ranks: 3, Rank: rank}
		wrong := &ccl.InvalidArgumentError{Operation: "ddp.Sampler", Message: fmt.Sprintf("Rank is %d of 3 Ranks, and must be at least 0 and less than Ranks", rank)}
		require.PanicsWithError(t, wrong.Error(), func() { s.Indices(0) })
		l := ddp.Loader[int]{Sampler: s, Batch: 1, Load: func(context.Context, []int) (int, error) { return 0, nil }}
		var errs []error
		for _, err := range l.Epoch(t.Context(), 0, 0) {
			errs = append(errs, err)
		}
		require.Equal(t, []error{wrong}, errs)
	}
}
