package dist_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requireUnfinished returns the count of Works in err.
func requireUnfinished(t *testing.T, err error) dist.UnfinishedError {
	t.Helper()
	var e *dist.UnfinishedError
	require.ErrorAs(t, err, &e)
	return *e
}

// joined is a worker that leaves its group for Spawn to close.
func joined(w worker, opts ...dist.InitOption) worker {
	return func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", opts...); err != nil {
			return err
		}
		return w(ctx, rank)
	}
}

// awaitLeft returns when a rank has left the group.
func awaitLeft(t *testing.T, rank int) {
	_, err := dist.Recv([]int{0}, rank, 99, dist.WithContext(context.Background()), dist.WithCallTimeout(-1))
	var lost *dist.PeerLostError
	assert.ErrorAs(t, err, &lost)
	assert.Equal(t, rank, lost.Rank)
}

// After a worker returns nil, its asynchronous calls complete, in all its groups.
func TestWorkerDrains(t *testing.T) {
	var works perRank[[]*dist.Work]
	var sums perRank[[]int]
	received := make([]int, 1)
	err := spawn(t, joined(func(_ context.Context, rank int) error {
		g, err := dist.NewGroup([]int{0, 1, 2})
		if err != nil {
			return err
		}
		x := []int{rank + 1}
		var started []*dist.Work
		for range 50 {
			w, err := dist.AllReduceAsync(x, dist.Max)
			v, err2 := dist.AllReduceAsync([]int{rank}, dist.Sum, dist.WithGroup(g))
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			started = append(started, w, v)
		}
		switch rank {
		case 0:
			w, err := dist.Isend([]int{42}, 1, 0)
			if err != nil {
				return err
			}
			started = append(started, w)
		case 1:
			if _, err := dist.Recv(received, 0, 0); err != nil {
				return err
			}
		}
		works.put(rank, started)
		sums.put(rank, x)
		return nil
	}), dist.WithRanks(3))
	require.NoError(t, err)
	for rank, all := range works.values {
		require.Equal(t, []int{3}, sums.values[rank])
		for _, w := range all {
			select {
			case <-w.Done():
				require.NoError(t, w.Err())
			default:
				require.Fail(t, "a Work goes on")
			}
		}
	}
	require.Equal(t, []int{42}, received)
}

// A receive that matched no message is dropped and counted, for its rank alone.
func TestWorkerDropsReceives(t *testing.T) {
	err := spawn(t, joined(func(_ context.Context, rank int) error {
		switch rank {
		case 0:
			_, err := dist.Irecv([]int{0}, 1, 0)
			return err
		case 1:
			awaitLeft(t, 0)
			return dist.Send([]int{1}, 2, 0)
		default:
			_, err := dist.Recv([]int{0}, 1, 0)
			return err
		}
	}), dist.WithRanks(3))
	require.EqualError(t, err, "rank 0: the worker returned nil before its asynchronous calls had ended: "+
		"1 receive has not ended (recv from rank 1, tag 0): wait for it before the group is closed, by Wait of its Work, or of the Reducer that has started it")
	require.Equal(t, dist.UnfinishedError{Receives: 1, Works: []string{"recv from rank 1, tag 0"}}, requireUnfinished(t, err))
}

// The error of a call that Spawn waits for becomes the error of its rank.
func TestDrainFails(t *testing.T) {
	err := spawn(t, joined(func(_ context.Context, rank int) error {
		if rank == 0 {
			_, err := dist.BarrierAsync(dist.WithCallTimeout(-1))
			return err
		}
		return nil
	}), dist.WithRanks(2))
	var lost *dist.PeerLostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, 1, lost.Rank)

	stopped, stop := context.WithCancelCause(t.Context())
	err = spawn(t, joined(func(_ context.Context, rank int) error {
		if rank == 0 {
			defer stop(errStop)
			_, err := dist.BarrierAsync(dist.WithContext(context.Background()), dist.WithCallTimeout(-1))
			return err
		}
		awaitLeft(t, 0)
		return nil
	}), dist.WithRanks(2), dist.WithSpawnContext(stopped))
	require.ErrorIs(t, err, errStop)
	require.Equal(t, dist.UnfinishedError{Calls: 1, Works: []string{"barrier"}}, requireUnfinished(t, err))
}

// DestroyProcessGroup does not wait, and counts the Works it drops.
func TestDestroyCounts(t *testing.T) {
	destroyed := make(chan struct{})
	err := spawn(t, joined(func(_ context.Context, rank int) error {
		if rank == 1 {
			<-destroyed
			return nil
		}
		defer close(destroyed)
		w, err := dist.BarrierAsync()
		v, err2 := dist.Irecv([]int{0}, 1, 0)
		assert.NoError(t, errors.Join(err, err2))
		err = dist.DestroyProcessGroup()
		assert.ErrorIs(t, w.Wait(context.Background()), ccl.ErrClosed)
		assert.ErrorIs(t, v.Wait(context.Background()), ccl.ErrClosed)
		return err
	}), dist.WithRanks(2))
	require.Equal(t, dist.UnfinishedError{Calls: 1, Receives: 1, Works: []string{"barrier", "recv from rank 1, tag 0"}}, requireUnfinished(t, err))
}
