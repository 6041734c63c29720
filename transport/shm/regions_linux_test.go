package shm

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/transport"
)

// joined connects ranks of this process, each with mappings of its own.
func joined(t *testing.T, ranks int) []*mapped {
	t.Helper()
	own(t)
	t.Cleanup(JoinWith(small))
	eps := make([]*mapped, ranks)
	all(t, ranks, func(rank int) error {
		ep, err := Join(t.Context(), Job{Name: "job", Rank: rank, Size: ranks})
		if err == nil {
			eps[rank] = ep.(*mapped)
		}
		return err
	})
	t.Cleanup(func() {
		for _, ep := range eps {
			require.NoError(t, errors.Join(ep.Close(), ep.Free()))
		}
	})
	return eps
}

// all runs what on all ranks side by side.
func all(t *testing.T, ranks int, what func(rank int) error) {
	t.Helper()
	errs := make([]error, ranks)
	var each sync.WaitGroup
	for rank := range ranks {
		each.Go(func() { errs[rank] = what(rank) })
	}
	each.Wait()
	require.NoError(t, errors.Join(errs...))
}

// segments counts the segments of the test that are mapped.
func segments(t *testing.T) int { return strings.Count(mappedAreas(t), directory) }

// exposed enters a call that shows a buffer.
func exposed(ep *mapped, seq uint64, b []byte) error {
	_, err := ep.Enter(&transport.Entry{Ctx: context.Background(), Seq: seq, Exposed: true, Send: b, Recv: b})
	return err
}

// makeRegions makes a region, in a call.
func makeRegions(t *testing.T, eps []*mapped, seq uint64, size int) []transport.Region {
	t.Helper()
	regions := make([]transport.Region, len(eps))
	all(t, len(eps), func(rank int) (err error) {
		if err = exposed(eps[rank], seq, nil); err != nil {
			return err
		}
		if regions[rank], err = eps[rank].Region(context.Background(), size); err != nil {
			return err
		}
		return eps[rank].Complete()
	})
	return regions
}

// A region that its ranks have done with, while a call shows it, stays until the call ends;
// its pages are gone when the last rank has done with it, and the mappings with the next call.
func TestRegionIsGivenBackBetweenCalls(t *testing.T) {
	eps := joined(t, 2)
	before := segments(t)
	regions := makeRegions(t, eps, 1, 1<<20)
	require.Equal(t, before+2, segments(t))
	all(t, 2, func(rank int) error {
		regions[rank].Bytes()[rank] = byte(rank + 1)
		return exposed(eps[rank], 2, regions[rank].Bytes()[:2])
	})
	require.NotNil(t, eps[0].Memory())
	require.NoError(t, regions[0].Free())
	send, _ := eps[0].Buffers(1)
	require.Equal(t, []byte{1, 2}, send, "another rank shows it")
	blocks := func() int64 {
		var st unix.Stat_t
		require.NoError(t, unix.Fstat(eps[0].regions.have[0].memory.(segmentMemory).fd, &st))
		return st.Blocks * 512
	}
	require.Greater(t, blocks(), int64(1<<20))
	require.NoError(t, errors.Join(regions[1].Free(), regions[1].Free()))
	require.NotPanics(t, func() { eps[0].Buffers(1) })
	require.Equal(t, before+2, segments(t), "the call goes on")
	require.Less(t, blocks(), int64(1<<16))
	all(t, 2, func(rank int) error { return eps[rank].Complete() })
	all(t, 2, func(rank int) error { return exposed(eps[rank], 3, nil) })
	require.Equal(t, before, segments(t))
	all(t, 2, func(rank int) error { return eps[rank].Complete() })
}

// A region that a rank has not done with when it frees its endpoint is its own from then on.
func TestRegionOutlivesItsEndpoint(t *testing.T) {
	eps := joined(t, 2)
	kept, left := makeRegions(t, eps, 1, 100), makeRegions(t, eps, 2, 100)
	require.NoError(t, left[0].Free())
	before := segments(t)
	require.NoError(t, errors.Join(eps[0].Close(), eps[0].Free()))
	require.Equal(t, before-2, segments(t), "the segment, and the region that the rank has done with")
	kept[0].Bytes()[99] = 1
	require.NoError(t, errors.Join(kept[0].Free(), left[0].Free(), kept[0].Free()))
	require.Equal(t, before-3, segments(t))
	require.EqualValues(t, 1, kept[1].Bytes()[99])
}
