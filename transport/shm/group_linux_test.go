package shm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// small is a geometry with which making many groups takes little time.
func small(ranks int) Geometry {
	g := SmallestGeometry(ranks)
	g.Payload, g.Piece = 1<<10, 1<<10
	return g
}

// mappings counts the segments that this process has mapped.
func mappings() (n int) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		panic(err)
	}
	return strings.Count(string(text), "/goccl-") + strings.Count(string(text), directory)
}

// comeAndGo forms groups of all ranks, makes a call in each and closes it.
func comeAndGo(ep transport.Endpoint, first, groups uint64) error {
	members := make([]int, ep.Size())
	for i := range members {
		members[i] = i
	}
	for number := first; number < first+groups; number++ {
		inner, err := ep.(transport.Groups).Group(context.Background(), number, members)
		if err != nil {
			return fmt.Errorf("group %d: %w", number, err)
		}
		_, err = inner.Enter(&transport.Arrival{Ctx: context.Background(), Seq: 1})
		if err := errors.Join(err, inner.Close(), inner.Free()); err != nil {
			return fmt.Errorf("group %d: %w", number, err)
		}
	}
	return nil
}

// After a thousand groups were made and closed there are as much memory and as many mappings,
// descriptors and goroutines as before.
func TestGroupsGiveBack(t *testing.T) {
	useOwnDirectory(t)
	defer JoinWith(small)()
	const ranks = 2
	eps := make([]transport.Endpoint, ranks)
	all := func(what func(rank int) error) {
		t.Helper()
		errs := make([]error, ranks)
		var each sync.WaitGroup
		for rank := range ranks {
			each.Go(func() { errs[rank] = what(rank) })
		}
		each.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	all(func(rank int) (err error) {
		eps[rank], err = Join(t.Context(), Job{Name: "job", Rank: rank, Size: ranks})
		return err
	})
	groups := func(first, n uint64) { all(func(rank int) error { return comeAndGo(eps[rank], first, n) }) }
	measure := func() (files, maps, goroutines int, memory uint64) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return openFiles(), mappings(), runtime.NumGoroutine(), m.HeapAlloc
	}
	groups(1, 100)
	files, maps, goroutines, memory := measure()
	groups(101, 1000)
	nowFiles, nowMaps, nowGoroutines, nowMemory := measure()
	if maps == 0 || nowFiles != files || nowMaps != maps || nowGoroutines > goroutines || nowMemory > memory+256<<10 {
		t.Errorf("after 1000 groups there are %d files, %d mappings, %d goroutines and %d bytes, before %d, %d, %d and %d",
			nowFiles, nowMaps, nowGoroutines, nowMemory, files, maps, goroutines, memory)
	}
	all(func(rank int) error { return errors.Join(eps[rank].Close(), eps[rank].Free()) })
}

// groupResult is what a rank in a separate process reports about its groups.
type groupResult struct {
	Err           string
	Files, Maps   int                      // more than before
	Lost, Missing *transport.PeerLostError // of a P2P, and of Group
}

// playGroups runs a rank that forms groups, then waits until another rank is dead.
func playGroups(spec rankSpec, in *bufio.Scanner) {
	geometryOf = small
	var r groupResult
	ep, err := Join(context.Background(), spec.Job)
	if err == nil {
		err = comeAndGo(ep, 1, 20)
	}
	files, maps := openFiles(), mappings()
	if err == nil {
		err = comeAndGo(ep, 21, spec.Groups)
	}
	r.Files, r.Maps = openFiles()-files, mappings()-maps
	if err != nil {
		r.Err = err.Error()
		reply("groups", r)
		return
	}
	members := []int{1, 0}
	inner, err := ep.(transport.Groups).Group(context.Background(), 0, members)
	if err != nil {
		r.Err = err.Error()
	}
	reply("groups", r)
	if err != nil || !in.Scan() {
		return
	}
	if spec.Job.Rank == 1 { // it is killed while it makes a group
		atPoint = func(point string) {
			if point == "named" {
				reply("named", true)
				in.Scan()
			}
		}
		_, _ = ep.(transport.Groups).Group(context.Background(), 1<<40, members)
		return
	}
	for !errors.As(inner.P2P().Lost(0), &r.Lost) {
		inner.P2P().Rest(func() bool { return false }, false)
	}
	_, err = ep.(transport.Groups).Group(context.Background(), 1<<40, members)
	errors.As(err, &r.Missing)
	if err := errors.Join(inner.Close(), inner.Free(), ep.Close(), ep.Free()); err != nil {
		r.Err = err.Error()
	}
	reply("rested", r)
}

// Ranks that are processes form groups, and notice in a group that a member has died. Nothing remains
// of the group that the member was making.
func TestGroupsOfProcesses(t *testing.T) {
	useOwnDirectory(t)
	var ranks []*rank
	for i := range 2 {
		ranks = append(ranks, startRank(t, rankSpec{Job: Job{Name: "job", Rank: i, Size: 2}, Groups: 200}))
	}
	for i, r := range ranks {
		got := ask[groupResult](r, "", "groups")
		if got != (groupResult{}) {
			t.Fatalf("rank %d: %+v", i, got)
		}
	}
	ask[bool](ranks[1], "go on", "named")
	ranks[1].kill()
	got := ask[groupResult](ranks[0], "go on", "rested")
	want := &transport.PeerLostError{Rank: 0, PID: ranks[1].pid()} // its rank in the group
	if got.Err != "" || !reflect.DeepEqual(got.Lost, want) || !reflect.DeepEqual(got.Missing, want) {
		t.Errorf("%+v: lost %v, missing %v; want %v", got, got.Lost, got.Missing, want)
	}
}

// The memory of a group can vanish while the memory of its parent group remains.
func TestTruncatedGroup(t *testing.T) {
	useOwnDirectory(t)
	outer, err := Join(t.Context(), Job{Name: "job", Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := outer.(transport.Groups).Group(t.Context(), 1, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	inner := ep.(*mapped)
	region, err := inner.Region(100)
	if err != nil {
		t.Fatal(err)
	}
	if err := inner.Vanished(fault(&region.Bytes()[0])); !errors.Is(err, errGone) {
		t.Errorf("a fault in a region of a group: %v", err)
	}
	if err := unix.Ftruncate(inner.segment.fd, 0); err != nil {
		t.Fatal(err)
	}
	inner.P2P().Wake()
	if f := inner.Failure(); f == nil || !errors.Is(f.Cause, errGone) {
		t.Errorf("the failure is %+v", f)
	}
	if _, err := inner.Group(t.Context(), 2, []int{0}); !errors.Is(err, transport.ErrFailed) {
		t.Errorf("a group of a group that is gone: %v", err)
	}
	if outer.Failed() {
		t.Error("the outer group has failed, too")
	}
	if err := errors.Join(region.Free(), ep.Close(), ep.Free(), outer.Close(), outer.Free()); err != nil {
		t.Error(err)
	}
}

// A timeout names the member that does not come. A failure of the parent group ends the wait
// immediately.
func TestGroupThatNeverForms(t *testing.T) {
	useOwnDirectory(t)
	defer JoinWith(small)()
	eps := make([]transport.Endpoint, 2)
	var each sync.WaitGroup
	for rank := range eps {
		each.Go(func() {
			var err error
			if eps[rank], err = Join(t.Context(), Job{Name: "job", Rank: rank, Size: 2}); err != nil {
				t.Error(err)
			}
		})
	}
	each.Wait()
	if t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := eps[0].(transport.Groups).Group(ctx, 1, []int{0, 1})
	if late := (*transport.TimeoutError)(nil); !errors.As(err, &late) || fmt.Sprint(late.Missing) != "[1]" {
		t.Errorf("got %v, want *TimeoutError of rank 1", err)
	}
	defer stopAt(func(point string) {
		if point == "named" {
			eps[1].Fail(&transport.Failure{Kind: transport.FailureAborted, By: 1, Text: "over"})
		}
	})()
	if _, err := eps[0].(transport.Groups).Group(t.Context(), 2, []int{0, 1}); !errors.Is(err, transport.ErrFailed) {
		t.Errorf("got %v, want %v", err, transport.ErrFailed)
	}
	for _, ep := range eps {
		if err := errors.Join(ep.Close(), ep.Free()); err != nil {
			t.Error(err)
		}
	}
}

// Different groups and regions have different names. The names are valid names of jobs, also if the
// job's own name has the greatest length.
func TestPartNames(t *testing.T) {
	seen := map[string]bool{}
	var parts func(h header, deep int)
	parts = func(h header, deep int) {
		for _, part := range []Job{
			h.subJob(0, 1, "-region-%d", 0), h.subJob(0, 1, "-region-%d", 1000000),
			h.subJob(0, 1, "-group-%d-%d", 0, 0), h.subJob(0, 1, "-group-%d-%d", uint64(1)<<63, 65535),
		} {
			of, err := newHeader(part, 1)
			if err != nil || seen[part.Name] {
				t.Fatalf("%q: %v, or twice", part.Name, err)
			}
			if seen[part.Name] = true; deep > 0 {
				parts(of, deep-1)
			}
		}
	}
	for _, job := range []string{"/job", "job-group-1", strings.Repeat("j", maxName-1), strings.Repeat("j", maxName)} {
		h, err := newHeader(Job{Name: job, Size: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		parts(h, 3)
	}
}

// A job of the longest name makes regions and groups.
func TestLongestName(t *testing.T) {
	useOwnDirectory(t)
	defer JoinWith(small)()
	ep, err := Join(t.Context(), Job{Name: strings.Repeat("j", maxName), Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	region, err := ep.(transport.Regions).Region(100)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := ep.(transport.Groups).Group(t.Context(), 1, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(region.Free(), inner.Close(), inner.Free(), ep.Close(), ep.Free()); err != nil {
		t.Error(err)
	}
}

// Two jobs of one name make groups at the same time; the second job started after the first had
// joined. Ranks of both jobs are never in one group.
func TestGroupsOfTwoJobsOfOneName(t *testing.T) {
	useOwnDirectory(t)
	defer JoinWith(small)()
	const jobs, ranks = 2, 2
	var eps, groups [jobs][ranks]transport.Endpoint
	each := func(f func(job, rank int) error) {
		t.Helper()
		var all sync.WaitGroup
		errs := make([]error, jobs*ranks)
		for i := range errs {
			all.Go(func() { errs[i] = f(i/ranks, i%ranks) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	for job := range jobs {
		var all sync.WaitGroup
		for rank := range ranks {
			all.Go(func() {
				var err error
				if eps[job][rank], err = Join(t.Context(), Job{Name: "job", Rank: rank, Size: ranks}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// Rank 0 of one job and rank 1 of the other come first.
	var joiners sync.WaitGroup
	joiners.Add(2)
	each(func(job, rank int) (err error) {
		if job == rank {
			joiners.Done()
		} else {
			joiners.Wait()
		}
		groups[job][rank], err = eps[job][rank].(transport.Groups).Group(ctx, 1, []int{0, 1})
		return err
	})
	each(func(job, rank int) error {
		ep := groups[job][rank]
		_, err := ep.Enter(&transport.Arrival{Ctx: ctx, Seq: 1, Payload: []byte{byte(job)}})
		for peer := range ranks {
			if got := ep.Payload(peer, 1)[0]; err == nil && got != byte(job) {
				err = fmt.Errorf("rank %d of job %d is in a group with rank %d of job %d", rank, job, peer, got)
			}
		}
		return err
	})
	each(func(job, rank int) error {
		return errors.Join(groups[job][rank].Close(), groups[job][rank].Free(), eps[job][rank].Close(), eps[job][rank].Free())
	})
}
