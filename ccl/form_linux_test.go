package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// everyShared is everyWorld with ranks that share memory as processes do.
func everyShared(t *testing.T, f func(t *testing.T, connect connector)) {
	everyWorld(t, f)
	t.Run("mapped", func(t *testing.T) {
		jobs := 0
		f(t, func(n int) ([]transport.Endpoint, error) {
			eps := make([]transport.Endpoint, n)
			jobs++
			err := errors.Join(each(n, func(r int) (err error) {
				eps[r], err = shm.Join(t.Context(), shm.Job{Name: fmt.Sprintf("%s-%d-%d", "ccl-test", os.Getpid(), jobs), Rank: r, Size: n})
				return err
			})...)
			return eps, err
		})
	})
}

// hasty is an endpoint whose rank gives up its groups at once. Then it closes over, if it has given up so many.
type hasty struct {
	transport.Endpoint
	many *int
	over chan struct{}
	stop error
}

func (h hasty) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	cancelled, cancel := context.WithCancelCause(ctx)
	cancel(h.stop)
	ep, err := h.Endpoint.(transport.Groups).Group(cancelled, number, members)
	if *h.many--; *h.many == 0 {
		close(h.over)
	}
	return ep, err
}

// A rank whose context ends between the call and the first of its many groups tells the members of all of them, also
// those that come later, and is the rank to blame. The outer group lives on.
func TestFormOfManyThatOneRankGivesUp(t *testing.T) {
	lists := [][]int{{0, 1}, {2, 0}, {0, 3}, {4, 0}}
	stop := errors.New("the user pressed stop")
	everyShared(t, func(t *testing.T, connect connector) {
		g := group(t, func(n int) ([]transport.Endpoint, error) {
			eps, err := connect(n)
			many, over := len(lists), make(chan struct{})
			eps[0] = hasty{eps[0], &many, over, stop}
			for r := 1; r < n; r++ {
				eps[r] = seatless{eps[r], func(ctx context.Context, _ transport.Endpoint) context.Context {
					<-over
					return ctx
				}}
			}
			return eps, err
		}, 5)
		for r, err := range each(5, func(r int) error { _, err := g[r].Form(bg, lists); return err }) {
			require.ErrorContains(t, err, stop.Error(), "rank %d", r)
			var aborted *transport.AbortedError
			if r > 0 {
				require.ErrorAs(t, err, &aborted)
				require.Zero(t, lists[r-1][aborted.By], "rank %d", r)
			}
		}
		allSum(t, g, 10)
	})
}

// An error of a later group blames no rank by its number in an earlier one.
func TestFormBlamesRanksOfTheGroup(t *testing.T) {
	everyShared(t, func(t *testing.T, connect connector) {
		left := make(chan struct{})
		g := group(t, func(n int) ([]transport.Endpoint, error) {
			eps, err := connect(n)
			eps[2] = seatless{eps[2], func(ctx context.Context, ep transport.Endpoint) context.Context {
				_ = ep.Close()
				close(left)
				return ctx
			}}
			eps[1] = seatless{eps[1], func(ctx context.Context, _ transport.Endpoint) context.Context {
				<-left
				return ctx
			}}
			return eps, err
		}, 4)
		errs := each(4, func(r int) error { _, err := g[r].Form(bg, [][]int{{1, 2}, {3, 1}}); return err })
		require.Error(t, errs[1])
		var lost *transport.PeerLostError
		var aborted *transport.AbortedError
		require.ErrorAs(t, errs[3], &aborted)
		require.Equal(t, 1, aborted.By)
		require.False(t, errors.As(errs[3], &lost), "%v", errs[3])
	})
}
