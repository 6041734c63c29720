package ccl_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// hooked is an endpoint of a rank that does something when it enters a call, and before it asks whether its group has failed.
type hooked struct {
	transport.Endpoint
	enter, failure func()
}

func (h *hooked) Enter(e *transport.Arrival) (transport.Role, error) {
	h.enter()
	return h.Endpoint.Enter(e)
}

func (h *hooked) Failure() *transport.Failure {
	h.failure()
	return h.Endpoint.Failure()
}

// hookedPair returns two ranks, and the endpoint of rank 0.
func hookedPair(t *testing.T, connect connector) ([]*ccl.Communicator, *hooked) {
	h := &hooked{enter: nothing, failure: nothing}
	return group(t, func(n int) ([]transport.Endpoint, error) {
		eps, err := connect(n)
		h.Endpoint, eps[0] = eps[0], h
		return eps, err
	}, 2), h
}

// causes are errors of other groups, with which programs end contexts.
var causes = map[string]error{
	"lost":     &transport.PeerLostError{Rank: 7},
	"timeout":  &transport.TimeoutError{Missing: []int{7}, By: 8},
	"stuck":    &transport.TimeoutError{Behind: []int{7}, By: 8},
	"mismatch": &ccl.MismatchError{Field: "count"},
	"rejected": &transport.RejectedError{Ranks: []int{7}, Why: []string{"why"}},
	"closed":   ccl.ErrClosed,
}

// A rank whose context ends gives up itself, whatever the context's cause is about: its error is the context's, and names no rank.
func TestCauseOfAnotherGroup(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for name, cause := range causes {
			t.Run(name, func(t *testing.T) {
				g, h := hookedPair(t, connect)
				ctx, cancel := context.WithCancelCause(bg)
				h.enter = func() { cancel(cause) }
				err := g[0].Barrier(ctx)
				var failed *ccl.CollectiveFailedError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, -1, failed.Peer)
				for _, err := range []error{err, g[0].Err(), g[0].Barrier(bg)} {
					require.ErrorIs(t, err, context.Canceled)
					require.ErrorIs(t, err, cause)
				}
				aborted, ok := errors.AsType[*transport.AbortedError](g[1].Barrier(bg))
				require.True(t, ok && aborted.By == 0, "%v", g[1].Err())
			})
		}
	})
}

// The same for a receive, which leaves the group and other receives alive.
func TestCauseOfAnotherGroupEndsAReceive(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for name, cause := range causes {
			t.Run(name, func(t *testing.T) {
				g := group(t, connect, 2)
				ctx, cancel := context.WithCancelCause(bg)
				ended := ccl.Irecv(ctx, g[0], make([]int32, 1), 1, 0)
				other := ccl.Irecv(bg, g[0], make([]int32, 1), 1, 1)
				cancel(cause)
				err := ended.Wait(bg)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, cause)
				var failed *ccl.CollectiveFailedError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, 1, failed.Peer)
				require.Empty(t, failed.Last)
				require.NoError(t, ccl.Send(bg, g[1], []int32{5}, 0, 1))
				require.NoError(t, other.Wait(bg))
			})
		}
	})
}

// A rank whose context ends a call finds that in its error, also if another rank fails the group before it does.
func TestContextEndsBesideAFailure(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g, h := hookedPair(t, connect)
		ctx, cancel := context.WithCancelCause(bg)
		stop := errors.New("the user pressed stop")
		h.enter = func() {
			cancel(stop)
			h.failure = func() { // the wait has ended
				g[1].Abort(errors.New("no more data"))
				for !h.Failed() {
					runtime.Gosched()
				}
			}
		}
		err := g[0].Barrier(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, stop)
		aborted, ok := errors.AsType[*transport.AbortedError](err)
		require.True(t, ok && aborted.By == 1, "%v", err)
		require.ErrorContains(t, err, "aborted by rank 1: no more data")
	})
}
