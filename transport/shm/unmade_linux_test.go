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
			own(t)
			eps := joinedRanks(t, 3)
			members := []int{2, 0, 1}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			errs := make([]error, 3)
			group := func(r int) { _, errs[r] = eps[members[r]].(transport.Groups).Group(ctx, 7, members) }
			waits := func() {}
			if unable != 0 { // rank 0 has made the memory and waits
				named, over := make(chan struct{}), make(chan struct{})
				restore := stopAt(func(point string) {
					if point == "named" {
						close(named)
					}
				})
				go func() { defer close(over); group(0) }()
				<-named
				waits = func() { <-over; restore() }
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

// A member's report about one group does not affect another group. The latest reports are kept.
func TestUnmadeGroups(t *testing.T) {
	own(t)
	eps := joinedRanks(t, 2)
	zero, one := eps[0].(*mapped), eps[1].(*mapped)
	for number := range uint64(unmadeSlots + 1) {
		one.reportUnmade(number, 1, &transport.Failure{Kind: transport.FailureAborted, By: 1, Text: "no"})
	}
	for number := range uint64(unmadeSlots + 2) {
		want := number > 0 && number <= unmadeSlots
		if err := zero.whyUnmade(number, []int{1, 0}); (err != nil) != want {
			t.Errorf("group %d: %v", number, err)
		}
		if err := errors.Join(zero.whyUnmade(number, []int{0, 1}), one.whyUnmade(number, []int{1, 0})); err != nil {
			t.Errorf("group %d of other members, or by the rank itself: %v", number, err)
		}
	}
}
