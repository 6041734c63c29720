package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// requireUnfinished fails unless err contains an UnfinishedError with the numbers of want, which names Works.
func requireUnfinished(t *testing.T, want ccl.UnfinishedError, err error) {
	t.Helper()
	var got *ccl.UnfinishedError
	require.ErrorAs(t, err, &got)
	require.NotEmpty(t, got.Works)
	want.Works = got.Works
	require.Equal(t, want, *got)
}

// begin starts calls and messages of each kind on rank 0 of 2. They end only when rank 1 calls
// answer; the receive has no message.
func begin(c *ccl.Communicator) []*ccl.Work {
	return []*ccl.Work{
		started(func(async ccl.CallOption) error { return c.Barrier(bg, async) }), started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, c, []int32{1}, []int32{0}, ccl.Sum, async) }), started(func(async ccl.CallOption) error { return c.Barrier(bg, async) }),
		ccl.Isend(bg, c, numbers(1, 10_000), 1, 1), ccl.Isend(bg, c, numbers(2, 10_000), 1, 1),
		ccl.Irecv(bg, c, []int32{0}, 1, 7),
	}
}

// answer makes the calls of rank 1 that end the Works of begin.
func answer(c *ccl.Communicator) error {
	x := []int32{1}
	err := errors.Join(c.Barrier(bg), ccl.AllReduce(bg, c, x, x, ccl.Sum), c.Barrier(bg))
	for range 2 {
		_, received := ccl.Recv(bg, c, make([]int32, 10_000), 0, 1)
		err = errors.Join(err, received)
	}
	return err
}

// Drain of a communicator that New has not made is an error.
func TestDrainRefuses(t *testing.T) {
	var none *ccl.Communicator
	require.ErrorIs(t, none.Drain(bg), ccl.ErrInvalidCommunicator)
	require.ErrorIs(t, new(ccl.Communicator).Drain(bg), ccl.ErrInvalidCommunicator)
}

// Drain waits for all Works except receives without a message.
func TestDrain(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		require.NoError(t, g[0].Drain(bg))
		works := begin(g[0])
		stopped, stop := context.WithCancelCause(bg)
		stop(errors.New("enough"))
		err := g[0].Drain(stopped)
		requireUnfinished(t, ccl.UnfinishedError{Calls: 3, Sends: 2, Receives: 1}, err)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "enough")

		errs := each(2, func(r int) error {
			if r == 1 {
				return answer(g[1])
			}
			return g[0].Drain(bg)
		})
		require.NoError(t, errs[1])
		require.EqualError(t, errs[0], "1 receive has not ended (recv from rank 1, tag 7): wait for it before the group is closed, by Wait of its Work, or of the Reducer that has started it")
		for i, w := range works[:5] {
			select {
			case <-w.Done():
				require.NoError(t, w.Err())
			default:
				require.Fail(t, "not ended", "Work %d", i)
			}
		}
		require.NoError(t, ccl.Send(bg, g[1], []int32{5}, 0, 7))
		require.NoError(t, works[5].Wait(bg))
		require.NoError(t, g[0].Drain(bg))
		require.NoError(t, g[0].Close())
	})
}

// Drain ends when the peers have left, also for Works without a timeout.
func TestDrainWithoutPeers(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		works := []*ccl.Work{
			started(func(async ccl.CallOption) error { return g[0].Barrier(bg, ccl.WithTimeout(-1), async) }),
			ccl.Isend(bg, g[0], numbers(1, 10_000), 1, 1, ccl.WithTimeout(-1)),
		}
		require.NoError(t, g[1].Close())
		err := g[0].Drain(bg)
		var lost *transport.PeerLostError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, 1, lost.Rank)
		for _, w := range works {
			require.ErrorAs(t, w.Err(), &lost)
		}
	})
}

// Close drops Works that have not ended and counts them, unless the group has failed.
func TestCloseCounts(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		works := begin(g[0])
		err := g[0].Close()
		requireUnfinished(t, ccl.UnfinishedError{Calls: 3, Sends: 2, Receives: 1}, err)
		require.EqualError(t, err, "3 calls, 2 sends and 1 receive have not ended "+
			"(barrier; all_reduce; send to rank 1, tag 1; recv from rank 1, tag 7): wait for each before the group is closed, by Wait of its Work, or of the Reducer that has started it")
		require.NoError(t, g[0].Close())
		for _, w := range works {
			require.ErrorIs(t, w.Wait(bg), ccl.ErrClosed)
		}

		g = group(t, connect, 2)
		works = begin(g[0])
		g[1].Abort(errors.New("had enough"))
		require.NoError(t, g[0].Close())
		for _, w := range works {
			require.Error(t, w.Wait(bg))
		}
	})
}

// Drain reports the failed Works whose error the program has not seen, and only those.
func TestDrainOfSeveralThatFailed(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 1)
		send := ccl.Isend(bg, g[0], []int32{1}, 0, 3)
		var works []*ccl.Work
		for range 3 {
			w := ccl.Irecv(bg, g[0], make([]int32, 2), 0, 3) // too long
			<-w.Done()
			works = append(works, w)
		}
		require.Error(t, works[0].Wait(bg))
		_, err := ccl.Recv(bg, g[0], make([]int32, 1), 0, 3)
		require.NoError(t, err)
		require.NoError(t, send.Wait(bg))
		err = g[0].Drain(bg)
		require.Error(t, err)
		require.Equal(t, 2, strings.Count(err.Error(), "recv"), "%v", err)
		require.NoError(t, g[0].Drain(bg))
	})
}

// The failure of a group is one error of Drain, with all that it has ended: those that the program has waited for, and more
// than Drain has the errors of.
func TestDrainHasOneCauseOnce(t *testing.T) {
	const works = 40
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var all []*ccl.Work
		for i := range works - 2 {
			all = append(all, started(func(async ccl.CallOption) error {
				return g[0].Barrier(bg, ccl.WithTimeout(-1), ccl.WithLabel(fmt.Sprint("step ", i)), async)
			}))
		}
		all = append(all, ccl.Irecv(bg, g[0], []int32{0}, 1, 7, ccl.WithTimeout(-1)), ccl.Irecv(bg, g[0], []int32{0}, 1, 8, ccl.WithTimeout(-1)))
		empty := errors.New("the disk is full")
		g[1].Abort(empty)
		for _, w := range all {
			<-w.Done()
		}
		require.Error(t, all[1].Wait(bg))
		err := g[0].Drain(bg)
		require.Regexp(t, `^ccl: (barrier|recv) .*, rank 0: .*`+fmt.Sprintf(`; this failure has ended %d Works of this rank \(asynchronous, .*\)$`, works), err.Error())
		require.Equal(t, 1, strings.Count(err.Error(), empty.Error()), "%v", err)
		require.ErrorIs(t, err, ccl.ErrInvalidCommunicator, "it has the errors of later Works as well")
		var aborted *transport.AbortedError
		require.ErrorAs(t, err, &aborted)
		require.Equal(t, 1, aborted.By)
		require.NoError(t, g[0].Drain(bg))

		wrong := started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, g[0], []int32{1}, nil, ccl.Sum, async) }) // it has a reason of its own
		<-wrong.Done()
		err = g[0].Drain(bg)
		require.ErrorContains(t, err, "recv has 0 elements, want 1; and ")
		require.NotContains(t, err.Error(), "this failure has ended")
	})
}

// An UnfinishedError names the Works, equal ones once, with their labels and, if calls are debugged, their lines; of
// many the first.
func TestUnfinishedNames(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var works []*ccl.Work
		for i := range 3 {
			works = append(works, started(func(async ccl.CallOption) error {
				return ccl.AllReduce(bg, g[0], []int32{1}, []int32{0}, ccl.Sum, ccl.WithLabel("bucket "+strconv.Itoa(i)), async)
			}))
		}
		for range 2 {
			works = append(works, ccl.Irecv(bg, g[0], []int32{0}, ccl.AnySource, 3, ccl.WithLabel("weights")))
		}
		for tag := range 30 {
			works = append(works, ccl.Irecv(bg, g[0], []int32{0}, 1, tag+10))
		}
		err := g[0].Close()
		require.EqualError(t, err, `3 calls and 32 receives have not ended (all_reduce "bucket 0"; all_reduce "bucket 1"; all_reduce "bucket 2"; `+
			`recv "weights" from any rank, tag 3; and others): wait for each before the group is closed, by Wait of its Work, or of the Reducer that has started it`)
		var unfinished *ccl.UnfinishedError
		require.ErrorAs(t, err, &unfinished)
		require.Len(t, unfinished.Works, 16)
		require.Equal(t, "recv from rank 1, tag 10", unfinished.Works[4])
		for _, w := range works {
			require.ErrorIs(t, w.Wait(bg), ccl.ErrClosed)
		}
	})
}

// A message that has ended is not among those that have not, wherever it was in their order.
func TestUnfinishedLeavesOutTheEnded(t *testing.T) {
	connect := func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }
	for _, ends := range [][]int{{0}, {1}, {2}, {0, 1}, {2, 1}, {0, 2}, {1, 0, 2}} {
		g := group(t, connect, 2)
		works := make([]*ccl.Work, 3)
		for i := range works {
			works[i] = ccl.Irecv(bg, g[0], []int32{0}, 1, i)
		}
		left := []string{"recv from rank 1, tag 0", "recv from rank 1, tag 1", "recv from rank 1, tag 2"}
		for _, i := range ends {
			require.NoError(t, ccl.Send(bg, g[1], []int32{1}, 0, i))
			require.NoError(t, works[i].Wait(bg))
			left = slices.DeleteFunc(left, func(name string) bool { return name == fmt.Sprint("recv from rank 1, tag ", i) })
		}
		err := g[0].Close()
		if len(left) == 0 {
			require.NoError(t, err)
			continue
		}
		var unfinished *ccl.UnfinishedError
		require.ErrorAs(t, err, &unfinished)
		require.Equal(t, left, unfinished.Works)
	}
}
