package shm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/transport"
)

// joined connects ranks that are goroutines of this process. Each has its own mappings.
func joined(t *testing.T, ranks int) []*mapped {
	t.Helper()
	useOwnDirectory(t)
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

// all runs what on all ranks concurrently.
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

// segments returns the number of the test's mappings of segments.
func segments(t *testing.T) int { return strings.Count(mappedAreas(t), directory) }

// exposed enters a call that shows a buffer.
func exposed(ep *mapped, seq uint64, b []byte) error {
	_, err := ep.Enter(&transport.Arrival{Ctx: context.Background(), Seq: seq, Exposed: true, Send: b, Recv: b})
	return err
}

// makeRegions makes a region in a call.
func makeRegions(t *testing.T, eps []*mapped, seq uint64, size int) []transport.Region {
	t.Helper()
	regions := make([]transport.Region, len(eps))
	all(t, len(eps), func(rank int) (err error) {
		if err = exposed(eps[rank], seq, nil); err != nil {
			return err
		}
		if regions[rank], err = eps[rank].Region(size); err != nil {
			return err
		}
		return eps[rank].Complete()
	})
	return regions
}

// If ranks free a region that a call shows, it stays mapped until the call ends. Its pages are released
// when the last rank has freed it, and the next call unmaps it.
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
		require.NoError(t, unix.Fstat(eps[0].regions.all[0].regionMemory.(segmentMemory).fd, &st))
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

// The buffers of an Eager call are shown in place if all lie in regions and all ranks poll. Otherwise
// the payloads are shown, also of ranks whose buffers lie in regions, and no rank waits at the end.
func TestEagerCallsInPlace(t *testing.T) {
	const length = 60
	eps := joined(t, 2)
	for _, ep := range eps {
		ep.poll = true
	}
	regions := makeRegions(t, eps, 1, 2*length)
	allowed := [2][]byte{regions[0].Bytes()[:length], regions[1].Bytes()[length:]}
	private := [2][]byte{make([]byte, length), make([]byte, length)}
	seq := uint64(1)
	for _, c := range []struct {
		buffers        [2][]byte
		noSpin, sleeps bool
		inPlace        bool
	}{
		{buffers: allowed, inPlace: true},
		{buffers: private},
		{buffers: [2][]byte{allowed[0], private[1]}},
		{buffers: allowed, inPlace: true},
		{buffers: [2][]byte{private[0], allowed[1]}},
		{buffers: allowed, noSpin: true},
		{buffers: allowed, sleeps: true},
		{buffers: allowed, inPlace: true},
	} {
		seq++
		eps[1].poll = !c.sleeps
		all(t, 2, func(rank int) error {
			ep, allowed := eps[rank], c.buffers[rank]
			for i := range allowed {
				allowed[i] = byte(int(seq) + 100*rank)
			}
			_, err := ep.Enter(&transport.Arrival{Ctx: t.Context(), Seq: seq, Exposed: true, Eager: true,
				NoSpin: c.noSpin && rank == 0, Payload: allowed, Send: allowed, Recv: allowed})
			if err != nil {
				return err
			}
			if (ep.Memory() != nil) != c.inPlace {
				return fmt.Errorf("call %d on rank %d: in place: %v", seq, rank, !c.inPlace)
			}
			for from := range 2 {
				got := ep.Payload(from, length)
				if c.inPlace {
					got, _ = ep.Buffers(from)
				}
				if !bytes.Equal(got, bytes.Repeat([]byte{byte(int(seq) + 100*from)}, length)) {
					return fmt.Errorf("call %d on rank %d: %v from rank %d", seq, rank, got, from)
				}
			}
			if !c.inPlace && rank == 0 {
				return nil // it completes last, and the other does not wait for it
			}
			return ep.Complete()
		})
		if !c.inPlace {
			require.NoError(t, eps[0].Complete())
		}
	}
}

// A region that a rank has not freed when it frees its endpoint stays mapped until the rank frees it.
func TestRegionOutlivesItsEndpoint(t *testing.T) {
	eps := joined(t, 2)
	kept, freed := makeRegions(t, eps, 1, 100), makeRegions(t, eps, 2, 100)
	require.NoError(t, freed[0].Free())
	before := segments(t)
	require.NoError(t, errors.Join(eps[0].Close(), eps[0].Free()))
	require.Equal(t, before-2, segments(t), "the segment, and the region that the rank has done with")
	kept[0].Bytes()[99] = 1
	require.NoError(t, errors.Join(kept[0].Free(), freed[0].Free(), kept[0].Free()))
	require.Equal(t, before-3, segments(t))
	require.EqualValues(t, 1, kept[1].Bytes()[99])
}

// Each rank allocates its own part of a region, and nothing else.
func TestEveryRankAllocatesItsPart(t *testing.T) {
	const size = 64 << 20
	eps := joined(t, 2)
	first, measured := make(chan struct{}, 1), make(chan struct{})
	first <- struct{}{}
	t.Cleanup(stopAt(func(point string) {
		switch point {
		case "region shared":
			select {
			case <-first:
			default:
				<-measured
			}
		case "region allocated":
			select {
			case <-measured:
				return
			default:
			}
			defer close(measured)
			var st unix.Stat_t
			if err := unix.Stat(filePath("job-region-0"), &st); err != nil {
				t.Error(err)
			}
			if taken := st.Blocks * 512; taken < size/2 || taken > size/2+64<<10 {
				t.Errorf("of %d bytes %d are taken when one of two ranks has its part", size, taken)
			}
		}
	}))
	for _, r := range makeRegions(t, eps, 1, size) {
		require.NoError(t, r.Free())
	}
}

// Parts are whole pages, and together they are the file.
func TestParts(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 7, 1000} {
		for _, size := range []int{1, 100, 4096, 4097, 8192, 1 << 20, 1<<20 + 1, 1<<40 + 12345} {
			h, err := newHeader(Job{Name: "job", Size: ranks}, size)
			require.NoError(t, err)
			s := &segment{header: h}
			require.Equal(t, h.offset(), s.part(0))
			require.Equal(t, h.total(), s.part(ranks))
			for r := range ranks {
				require.LessOrEqual(t, s.part(r), s.part(r+1))
				require.True(t, s.part(r)%h.page == 0 || s.part(r) == h.total())
			}
		}
	}
}

// If a rank cannot get its part of a region, for any reason, all ranks return the same error. Nothing
// of the region remains, and the next region is made.
func TestNoRoomForARegion(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T) (heal func())
		blame string
	}{
		"one rank's part": {func(*testing.T) func() {
			fallocate = func(fd int, mode uint32, off, n int64) error {
				if off > 1<<18 && off < 1<<19 { // where rank 1's part starts
					return unix.ENOSPC
				}
				return unix.Fallocate(fd, mode, off, n)
			}
			return func() { fallocate = unix.Fallocate }
		}, "rank 1: "},
		"none at all": {func(*testing.T) func() {
			fallocate = func(int, uint32, int64, int64) error { return unix.ENOSPC }
			return func() { fallocate = unix.Fallocate }
		}, "rank 0: "},
		"the file is gone": {func(t *testing.T) func() {
			return stopAt(func(point string) {
				if point == "region named" {
					require.NoError(t, unix.Unlink(filePath("job-region-0")))
				}
			})
		}, "rank 1: "},
		"a name that is taken": {func(t *testing.T) func() {
			for k := range maxNames {
				require.NoError(t, unix.Mkdir(numbered(filePath("job-region-0"), k), 0o700))
			}
			return func() {
				for k := range maxNames {
					require.NoError(t, unix.Rmdir(numbered(filePath("job-region-0"), k)))
				}
			}
		}, "rank 0: "},
	} {
		t.Run(name, func(t *testing.T) {
			eps := joined(t, 3)
			heal := c.spoil(t)
			before, files := segments(t), openFiles()
			messages := make([]string, len(eps))
			all(t, len(eps), func(rank int) error {
				if err := exposed(eps[rank], 1, nil); err != nil {
					return err
				}
				_, err := eps[rank].Region(1 << 20)
				none, ok := errors.AsType[*transport.AllocationFailedError](err)
				if !ok || none.RequestedBytes != 1<<20 {
					return fmt.Errorf("got %v, want *AllocationFailedError of %d bytes", err, 1<<20)
				}
				messages[rank] = none.Message
				return eps[rank].Complete()
			})
			heal()
			require.True(t, strings.HasPrefix(messages[0], c.blame), messages[0])
			require.Equal(t, slices.Repeat(messages[:1], len(messages)), messages)
			require.Equal(t, before, segments(t))
			require.Equal(t, files, openFiles())
			for _, r := range makeRegions(t, eps, 2, 1<<20) {
				r.Bytes()[0] = 1
				require.NoError(t, r.Free())
			}
			require.Nil(t, eps[0].Failure())
		})
	}
}

// playRegion runs a rank that makes a region, and may stop at a point while it does.
func playRegion(spec rankSpec, in *bufio.Scanner) {
	geometryOf = small
	ep, err := Join(context.Background(), spec.Job)
	if err != nil {
		panic(err)
	}
	atPoint = func(point string) {
		if point == spec.Stop {
			reply("at", point)
			in.Scan()
		}
	}
	if err := exposed(ep.(*mapped), 1, nil); err != nil {
		panic(err)
	}
	_, err = ep.(transport.Regions).Region(1 << 20)
	var lost *transport.PeerLostError
	errors.As(err, &lost)
	reply("lost", lost)
}

// If a rank dies while a region is made, the other ranks get an error. Nothing remains.
func TestDeathWhileARegionIsMade(t *testing.T) {
	for _, dies := range []int{0, 1} {
		for _, point := range []string{"region named", "region offered", "region shared", "region allocated", "region to be unnamed"} {
			if dies == 1 && (point == "region named" || point == "region to be unnamed") {
				continue // only rank 0 reaches this point
			}
			t.Run(fmt.Sprintf("rank %d at %s", dies, point), func(t *testing.T) {
				useOwnDirectory(t)
				var ranks []*rank
				for i := range 3 {
					spec := rankSpec{Job: Job{Name: "job", Rank: i, Size: 3}, Region: true}
					if i == dies {
						spec.Stop = point
					}
					ranks = append(ranks, startRank(t, spec))
				}
				ranks[dies].await("at")
				ranks[dies].kill()
				for i, r := range ranks {
					if i == dies {
						continue
					}
					var lost *transport.PeerLostError
					require.NoError(t, json.Unmarshal([]byte(r.await("lost")), &lost))
					require.Equal(t, &transport.PeerLostError{Rank: dies, PID: ranks[dies].pid()}, lost)
				}
			})
		}
	}
}
