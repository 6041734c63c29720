package shm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// joinedRanks returns the endpoints of a job with a small geometry. The end of the test frees them.
func joinedRanks(t *testing.T, n int) []transport.Endpoint {
	t.Helper()
	t.Cleanup(JoinWith(small))
	eps, errs := make([]transport.Endpoint, n), make([]error, n)
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() { eps[rank], errs[rank] = Join(t.Context(), Job{Name: "job", Rank: rank, Size: n}) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, ep := range eps {
			if err := errors.Join(ep.Close(), ep.Free()); err != nil {
				t.Error(err)
			}
		}
	})
	return eps
}

// A member that cannot open the memory of a new group tells the other members, whether they already wait
// for it or come later.
func TestGroupThatARankCannotMake(t *testing.T) {
	for unable := range 3 {
		t.Run(fmt.Sprint("rank ", unable), func(t *testing.T) {
			useOwnDirectory(t)
			eps := joinedRanks(t, 3)
			members := []int{2, 0, 1}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			errs := make([]error, 3)
			group := func(r int) { _, errs[r] = eps[members[r]].(transport.Groups).Group(ctx, 7, members) }
			waits := func() {}
			if unable != 0 { // rank 0 has made the memory and waits
				named, isLeftover := make(chan struct{}), make(chan struct{})
				restore := stopAt(func(point string) {
					if point == "named" {
						close(named)
					}
				})
				go func() { defer close(isLeftover); group(0) }()
				<-named
				waits = func() { <-isLeftover; restore() }
			}
			restore := limitFiles()
			group(unable)
			restore()
			waits()
			for r := range errs {
				if r != unable && errs[r] == nil {
					group(r)
				}
			}
			if !errors.Is(errs[unable], unix.EMFILE) || ctx.Err() != nil {
				t.Errorf("rank %d, which has no file descriptor: %v", unable, errs[unable])
			}
			for r, err := range errs {
				aborted, ok := errors.AsType[*transport.AbortedError](err)
				if r != unable && (!ok || aborted.By != unable || !strings.Contains(err.Error(), "too many open files")) {
					t.Errorf("rank %d: %v", r, err)
				}
			}
			// The next group is not affected.
			var all sync.WaitGroup
			for r, ep := range eps {
				all.Go(func() {
					inner, err := ep.(transport.Groups).Group(ctx, 8, members)
					if err == nil {
						err = errors.Join(inner.Close(), inner.Free())
					}
					errs[r] = err
				})
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
		})
	}
}

// A member that gives up the first of the many groups of a call, and then those that follow, tells the members of
// each, whichever of the groups they wait for.
func TestManyGroupsThatARankCannotMake(t *testing.T) {
	useOwnDirectory(t)
	const ranks, call = 5, 7
	eps := joinedRanks(t, ranks)
	group := func(ctx context.Context, r, i, peer int) error {
		_, err := eps[r].(transport.Groups).Group(ctx, call|uint64(i)<<48, []int{peer, 0})
		return err
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("the user pressed stop"))
	for i := range ranks - 1 {
		if err := group(stopped, 0, i, i+1); err == nil || !strings.Contains(err.Error(), "the user pressed stop") {
			t.Errorf("group %d on rank 0: %v", i, err)
		}
	}
	for i := range ranks - 1 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := group(ctx, i+1, i, i+1)
		cancel()
		aborted, ok := errors.AsType[*transport.AbortedError](err)
		if !ok || aborted.By != 1 || !strings.Contains(err.Error(), "the user pressed stop") {
			t.Errorf("group %d on rank %d: %v", i, i+1, err)
		}
	}
}

// A member's report about a group stands for those that follow in the same call, and for no others. The reports about
// the two latest calls are kept, however many groups a call has.
func TestUnmadeGroups(t *testing.T) {
	useOwnDirectory(t)
	eps := joinedRanks(t, 2)
	rank0, rank1 := eps[0].(*mapped), eps[1].(*mapped)
	const calls, lists, firstUnmade = unmadeSlots + 1, 6, 2
	number := func(call, i int) uint64 { return uint64(call) | uint64(i)<<48 }
	for call := range calls {
		for i := firstUnmade; i < lists; i++ {
			rank1.reportUnmade(number(call, i), &transport.Failure{Kind: transport.FailureAborted, By: 1, Text: "no"})
		}
	}
	for call := range calls + 1 {
		for i := range lists {
			want := call > 0 && call < calls && i >= firstUnmade
			err := rank0.whyUnmade(number(call, i), []int{0, 1})
			if aborted, ok := errors.AsType[*transport.AbortedError](err); ok != want || ok && aborted.By != 1 {
				t.Errorf("group %d of call %d: %v", i, call, err)
			}
			if err := rank1.whyUnmade(number(call, i), []int{1, 0}); err != nil {
				t.Errorf("group %d of call %d, by the rank itself: %v", i, call, err)
			}
		}
	}
}
