package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rules of torch's DistributedSampler, drop_last=False, for more
// samples than ranks, as many, and fewer.
func TestSampler(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 7, 16} {
		for _, samples := range []int{1, 2, 5, 7, 15, 16, 17, 100} {
			t.Run(fmt.Sprintf("ranks=%d/samples=%d", ranks, samples), func(t *testing.T) {
				const epoch = 3
				order := sampler{samples: samples, ranks: 1, seed: 9}.indices(epoch)
				permutation := slices.Sorted(slices.Values(order))
				for i, index := range permutation {
					require.Equal(t, i, index, "one rank gets every index once")
				}
				require.Len(t, order, samples)

				padded := slices.Clone(order) // torch's two steps: repeat, then cut
				for len(padded)%ranks != 0 {
					padded = append(padded, order[:min(samples, ranks-len(padded)%ranks)]...)
				}
				for rank := range ranks {
					var want []int
					for i := rank; i < len(padded); i += ranks {
						want = append(want, padded[i])
					}
					require.Equal(t, want, sampler{samples, ranks, rank, 9}.indices(epoch), "rank %d", rank)
				}
			})
		}
	}
}

func TestSamplerShuffles(t *testing.T) {
	s := sampler{samples: 50, ranks: 2, rank: 1, seed: 4}
	require.Equal(t, s.indices(2), s.indices(2), "an epoch has one order")
	require.NotEqual(t, s.indices(2), s.indices(3), "the next epoch has another")
	next := s
	next.seed++
	require.Equal(t, s.indices(3), next.indices(2), "seed and epoch are added up")
}
