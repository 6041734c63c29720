package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// The leader writes, all ranks fence, and all read the same memory.
func TestSharedRegion(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3} {
			g := group(t, connect, n)
			first := make([]*int64, n)
			for r, err := range each(n, func(r int) error {
				region, err := ccl.CreateSharedRegion[int64](t.Context(), g[r], 1000)
				if err != nil {
					return err
				}
				for i := range region.LeaderSlice() {
					region.LeaderSlice()[i] = int64(i * i)
				}
				if (len(region.LeaderSlice()) > 0) != g[r].IsLeader() || g[r].IsLeader() != (r == 0) {
					return errors.New("LeaderSlice is the leader's")
				}
				if err := region.Fence(t.Context()); err != nil {
					return err
				}
				for i, v := range region.Slice() {
					if v != int64(i*i) {
						return errors.New("a rank does not see what the leader wrote")
					}
				}
				if len(region.Slice()) != 1000 {
					return errors.New("Slice has another length")
				}
				first[r] = &region.Slice()[0]
				if err := region.Fence(t.Context()); err != nil { // before anyone closes it
					return err
				}
				return errors.Join(region.Close(), region.Close())
			}) {
				require.NoError(t, err, "rank %d", r)
			}
			for r := range n {
				require.Same(t, first[0], first[r], "the memory is there once")
			}
		}
	})
}

// All ranks write, each its own block.
func TestPopulate(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		for r, err := range each(3, func(r int) error {
			region, err := ccl.CreateSharedRegion[float32](t.Context(), g[r], 100)
			if err != nil {
				return err
			}
			block := region.BlockSlice()
			for i := range block {
				block[i] = float32(r + 1)
			}
			if err := region.Fence(t.Context()); err != nil {
				return err
			}
			sum := float32(0)
			for _, v := range region.Slice() {
				sum += v
			}
			if sum != 34*1+33*2+33*3 {
				return errors.New("the blocks do not make up the region")
			}
			return region.Fence(t.Context())
		}) {
			require.NoError(t, err, "rank %d", r)
		}
	})
}

// If ranks ask for different regions, all ranks return the same error.
func TestRegionsThatDiffer(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		for _, err := range each(2, func(r int) error {
			_, err := ccl.CreateSharedRegion[uint8](t.Context(), g[r], 10+r)
			return err
		}) {
			var mismatch *ccl.MismatchError
			require.ErrorAs(t, err, &mismatch)
			require.Equal(t, "count", mismatch.Field)
		}
	})
}

// Wrong arguments are refused, and the group lives on.
func TestRegionRefused(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		for _, count := range []int{0, -1, math.MinInt, math.MaxInt, math.MaxInt / 4} {
			for _, err := range each(2, func(r int) error {
				_, err := ccl.CreateSharedRegion[float64](t.Context(), g[r], count)
				_, other := ccl.Alloc[float64](t.Context(), g[r], count)
				if err == nil || other == nil {
					return errors.New("it was accepted")
				}
				var size *ccl.InvalidBufferSizeError
				var memory *transport.AllocationFailedError
				for _, err := range []error{err, other} {
					if count < 1 && !errors.As(err, &size) || count >= 1 && !errors.As(err, &memory) {
						return err
					}
				}
				return nil
			}) {
				require.NoError(t, err, "count %d", count)
			}
		}
		allSum(t, g, 10)
	})
}

// Collectives work on buffers of Alloc and of regions, also if only some ranks use them, at lengths
// that travel with the synchronisation, that would without Alloc, and that never do.
func TestAlloc(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{2, 3} {
			for _, count := range []int{7, 300, 5000, 50000} {
				g := group(t, connect, n)
				for r, err := range each(n, func(r int) error { return onAlloc(g[r], n, count) }) {
					require.NoError(t, err, "rank %d of %d, %d elements", r, n, count)
				}
				for _, c := range g {
					require.NoError(t, c.Close())
				}
			}
		}
	})
}

// onAlloc makes calls on buffers of Alloc and on private ones.
func onAlloc(c *ccl.Communicator, n, count int) error {
	ctx, r := context.Background(), c.Rank()
	a, err := ccl.Alloc[int32](ctx, c, count)
	if err != nil {
		return err
	}
	b, err := ccl.Alloc[int32](ctx, c, count)
	if err != nil {
		return err
	}
	if len(a) != count || len(b) != count {
		return errors.New("another length than asked for")
	}
	private := make([]int32, count)
	ranks, ones := int32(n*(n+1)/2), int32(n)
	for round, bufs := range [][2][]int32{{a, a}, {a, b}, {b, private}, {private, private}, {private, a}, {a, a}, {a, b}, {b, a}} {
		send, recv := bufs[0], bufs[1]
		if round >= 2 && round < 6 && r == 1 { // and one rank has others
			send, recv = private, private
		}
		for i := range send {
			send[i] = int32(i*(r+1) + round)
		}
		if err := ccl.AllReduce(ctx, c, send, recv, ccl.Sum); err != nil {
			return err
		}
		for i, v := range recv {
			if v != int32(i)*ranks+ones*int32(round) {
				return fmt.Errorf("round %d: a wrong sum", round)
			}
		}
		for i := range send {
			send[i] = int32(i) // no rank reads it any more
		}
	}
	for i := range a {
		a[i] = int32(i) * int32(r)
	}
	if err := ccl.Broadcast(ctx, c, a, 1); err != nil {
		return err
	}
	for i, v := range a {
		if v != int32(i) {
			return errors.New("a wrong broadcast")
		}
	}
	return nil
}

func TestSplitLocal(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		for r, err := range each(2, func(r int) error { return g[r].SplitLocal().Barrier(t.Context()) }) {
			require.NoError(t, err)
			require.Equal(t, r, g[r].SplitLocal().Rank())
			require.Equal(t, 2, g[r].SplitLocal().Size())
		}
	})
}

// A rank may close a region that others still use in collectives.
func TestRegionClosedByOne(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		const n, count = 2, 1000
		g := group(t, connect, n)
		for r, err := range each(n, func(r int) error {
			buf, err := ccl.Alloc[int32](bg, g[r], count)
			if err != nil {
				return err
			}
			region, err := ccl.CreateSharedRegion[int32](bg, g[r], count)
			if err != nil {
				return err
			}
			if r == 0 {
				if err := region.Close(); err != nil {
					return err
				}
			} else {
				buf = region.Slice()
			}
			for round := range 3 {
				for i := range buf {
					buf[i] = int32(i)
				}
				if err := ccl.AllReduce(bg, g[r], buf, buf, ccl.Sum); err != nil {
					return err
				}
				for i, v := range buf {
					if v != int32(n*i) {
						return errors.New("a wrong sum")
					}
				}
				if r == 1 && round == 1 {
					if err := region.Close(); err != nil {
						return err
					}
					buf = make([]int32, count)
				}
			}
			return nil
		}) {
			require.NoError(t, err, "rank %d", r)
		}
	})
}

// A communicator may make as many regions as it likes, and collectives work in the
// 32768th too.
func TestManyRegions(t *testing.T) {
	const n, count, regions = 2, 100, 1<<15 + 2
	g := group(t, func(n int) ([]transport.Endpoint, error) { return shm.NewHeap(n, shm.SmallestGeometry(n)) }, n)
	for r, err := range each(n, func(r int) error {
		for k := range regions {
			region, err := ccl.CreateSharedRegion[int32](bg, g[r], n*count)
			if err != nil {
				return err
			}
			if k >= regions-5 {
				buf := region.Slice()[r*count:][:count]
				for i := range buf {
					buf[i] = int32(i)
				}
				if err := ccl.AllReduce(bg, g[r], buf, buf, ccl.Sum); err != nil {
					return err
				}
				for i, v := range buf {
					if v != int32(n*i) {
						return fmt.Errorf("region %d: a wrong sum", k)
					}
				}
			}
			if err := region.Close(); err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(t, err, "rank %d", r)
	}
}

// If there is too little memory for a region, all ranks get an error, no process dies, and the
// group lives on.
func TestRegionLargerThanTheMachine(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("addresses end before memory does")
	}
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3} {
			g := group(t, connect, n)
			for _, count := range []int{math.MaxInt >> 23, math.MaxInt >> 10} { // 2^40, and what is not refused at once
				for r, err := range each(n, func(r int) error {
					_, err := ccl.CreateSharedRegion[float32](bg, g[r], count)
					_, other := ccl.Alloc[float32](bg, g[r], count)
					for _, err := range []error{err, other} {
						var none *transport.AllocationFailedError
						if !errors.As(err, &none) || none.RequestedBytes != 4*count {
							return fmt.Errorf("got %w, want *AllocationFailedError of %d bytes", err, 4*count)
						}
					}
					return nil
				}) {
					require.NoError(t, err, "rank %d", r)
				}
			}
			allSum(t, g, 10000)
			for _, c := range g {
				require.NoError(t, c.Err())
			}
		}
	})
}

// In a group of one rank a region may be empty.
func TestEmptyRegionAlone(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 1)
		region, err := ccl.CreateSharedRegion[int32](bg, g[0], 0)
		require.NoError(t, err)
		require.Empty(t, region.Slice())
		require.Empty(t, region.LeaderSlice())
		require.Empty(t, region.BlockSlice())
		require.NoError(t, errors.Join(region.Fence(bg), region.Close()))
		_, err = ccl.CreateSharedRegion[int32](bg, g[0], -1)
		var size *ccl.InvalidBufferSizeError
		require.ErrorAs(t, err, &size)
		require.Equal(t, 0, size.Expected)
	})
}

// Ranks that share no memory, as those of several nodes, have no regions. All of them learn it from the call, and the group goes on.
func TestSharedRegionApart(t *testing.T) {
	for _, n := range []int{2, 3} {
		g := group(t, func(n int) ([]transport.Endpoint, error) {
			eps, err := shm.NewHeap(n, shm.SmallestGeometry(n))
			for i, ep := range eps {
				eps[i] = struct{ transport.Endpoint }{ep} // hides its Regions
			}
			return eps, err
		}, n)
		for r, err := range each(n, func(r int) error {
			if _, err := ccl.CreateSharedRegion[float32](t.Context(), g[r], 100); !errors.Is(err, ccl.ErrNotImplemented) {
				return fmt.Errorf("a region: %w", err)
			}
			return g[r].Barrier(t.Context())
		}) {
			require.NoError(t, err, "rank %d of %d", r, n)
		}
	}
}
