package topology_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/topology"
)

func TestRingIsTheRingTopology(t *testing.T) {
	for size := 2; size <= 64; size++ {
		top, err := topology.New(topology.Ring1D, size, 0, 0)
		require.NoError(t, err)
		for rank := range size {
			ring := topology.NewRing(size, rank)
			n := top.Neighbors(rank)
			require.Equal(t, topology.Ring{Size: size, Rank: rank, Next: n[topology.East], Prev: n[topology.West]}, ring)
		}
	}
	require.Equal(t, topology.Ring{Size: 1}, topology.NewRing(1, 0), "alone, a rank has itself as Next and Prev")
}

func TestBlock(t *testing.T) {
	for size := 1; size <= 64; size++ {
		for rank := range size {
			ring := topology.NewRing(size, rank)
			require.Equal(t, rank, ring.Block(0))
			require.Equal(t, ring.Next, ring.Block(1))
			require.Equal(t, ring.Prev, ring.Block(-1))

			seen := make([]bool, size)
			for k := -size; k < 0; k++ {
				b := ring.Block(k)
				require.False(t, seen[b], "size %d rank %d: two of %d consecutive blocks are %d", size, rank, size, b)
				seen[b] = true
				require.Equal(t, b, ring.Block(k+size), "size %d rank %d k %d", size, rank, k)
				require.Equal(t, topology.NewRing(size, ring.Next).Block(k), ring.Block(k+1), "seen from the next rank")
			}
		}
	}
}

// blockOracle computes (rank + k) mod size without bounds.
func blockOracle(size, rank, k int) int {
	sum := new(big.Int).Add(big.NewInt(int64(rank)), big.NewInt(int64(k)))
	return int(sum.Mod(sum, big.NewInt(int64(size))).Int64())
}

func TestBlockOfAnyInt(t *testing.T) {
	for _, size := range []int{1, 2, 3, 7, 64, math.MaxInt - 1, math.MaxInt} {
		for _, rank := range []int{0, size / 2, size - 1} {
			for _, k := range []int{math.MinInt, math.MinInt + 1, -1000, -1, 0, 1, 1000, math.MaxInt - 1, math.MaxInt} {
				require.Equal(t, blockOracle(size, rank, k), topology.NewRing(size, rank).Block(k), "size %d rank %d k %d", size, rank, k)
			}
		}
	}
}

func FuzzBlock(f *testing.F) {
	f.Add(4, 1, -7)
	f.Add(math.MaxInt, math.MaxInt-1, math.MaxInt)
	f.Fuzz(func(t *testing.T, size, rank, k int) {
		if size < 1 || rank < 0 || rank >= size {
			require.Panics(t, func() { topology.NewRing(size, rank) })
			return
		}
		require.Equal(t, blockOracle(size, rank, k), topology.NewRing(size, rank).Block(k))
	})
}

func TestNewRingPanicsOnABrokenPrecondition(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {-1, -2}, {4, 4}, {4, -1}} {
		require.Panics(t, func() { topology.NewRing(c[0], c[1]) }, "size %d rank %d", c[0], c[1])
	}
	require.PanicsWithValue(t, "topology: no rank 4 in a ring of 4 ranks", func() { topology.NewRing(4, 4) })
}

// The schedule in NewRing's documentation, step by step, on blocks that record
// the order of their reduces: it must end with every rank holding all blocks, each
// reduced along the ring from the rank of its number, and send only blocks that
// the receiver means as well.
func TestRingAllReduceSchedule(t *testing.T) {
	for size := 1; size <= 16; size++ {
		rings := make([]topology.Ring, size)
		buffers := make([][]string, size) // by rank and block
		for rank := range size {
			rings[rank] = topology.NewRing(size, rank)
			for range size {
				buffers[rank] = append(buffers[rank], fmt.Sprint(rank))
			}
		}
		// step sends each rank's block out to its Next, where it must be block in.
		step := func(out, in int, merge func(got, have string) string) {
			sent := make([]string, size)
			for rank, ring := range rings {
				require.Equal(t, ring.Block(out), rings[ring.Next].Block(in))
				require.Equal(t, rank, rings[ring.Next].Prev)
				sent[rank] = buffers[rank][ring.Block(out)]
			}
			for rank, ring := range rings {
				b := ring.Block(in)
				buffers[rank][b] = merge(sent[ring.Prev], buffers[rank][b])
			}
		}

		for s := range size - 1 {
			step(-s, -s-1, func(got, have string) string { return got + " " + have })
		}
		want := make([]string, size)
		for b := range size {
			want[b] = fmt.Sprint(b)
			for k := 1; k < size; k++ {
				want[b] += fmt.Sprint(" ", (b+k)%size)
			}
		}
		for rank, ring := range rings {
			require.Equal(t, want[ring.Block(1)], buffers[rank][ring.Block(1)], "size %d: after reduce-scatter", size)
		}

		for s := range size - 1 {
			step(1-s, -s, func(got, have string) string { return got })
		}
		for rank := range rings {
			require.Equal(t, want, buffers[rank], "size %d rank %d: after all-gather", size, rank)
		}
	}
}
