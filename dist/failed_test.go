package dist_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The peers of a worker that fails after a deferred DestroyProcessGroup get its error, in
// waiting and later calls, and Spawn's error starts with it.
func TestWorkerFailsPastDestroy(t *testing.T) {
	full := errors.New("the disk is full")
	for name, fail := range map[string]func() error{
		"error": func() error { return full },
		"panic": func() error { panic(full) },
	} {
		t.Run(name, func(t *testing.T) {
			err := spawn(t, joined(func(_ context.Context, rank int) (err error) {
				defer func() {
					if destroyed := dist.DestroyProcessGroup(); err == nil {
						err = destroyed
					}
				}()
				if rank == 1 {
					return fail()
				}
				for range 2 {
					err = dist.Barrier()
					assert.ErrorIs(t, err, full)
					var aborted *dist.AbortedError
					if assert.ErrorAs(t, err, &aborted) {
						assert.Equal(t, 1, aborted.By)
					}
				}
				return err
			}), dist.WithRanks(3))
			require.ErrorIs(t, err, full)
			require.True(t, strings.HasPrefix(err.Error(), "rank 1: the "), "%v", err)
			var first *dist.RankError
			require.ErrorAs(t, err, &first)
			require.Equal(t, 1, first.Rank)
		})
	}
}

// A peer that left without an error is reported as lost, and errors of a group use its
// ranks.
func TestPeerLeftOrFailed(t *testing.T) {
	full := errors.New("the disk is full")
	lost0 := make(chan struct{})
	err := spawn(t, joined(func(_ context.Context, rank int) error {
		g, err := dist.NewGroup([]int{1, 2})
		if err != nil {
			return err
		}
		switch rank {
		case 0:
			return dist.DestroyProcessGroup()
		case 1:
			err = dist.Barrier()
			var lost *dist.PeerLostError
			assert.ErrorAs(t, err, &lost)
			close(lost0)
			err = dist.Barrier(dist.WithGroup(g))
			var aborted *dist.AbortedError
			if assert.ErrorAs(t, err, &aborted) {
				assert.Equal(t, 1, aborted.By, "of the group")
				assert.ErrorIs(t, err, full)
			}
			return nil
		default:
			<-lost0
			return errors.Join(full, dist.DestroyProcessGroup())
		}
	}), dist.WithRanks(3))
	require.ErrorIs(t, err, full)
}

// What a rank passes on to a group may be an error of another group, with numbers that this one does not have.
func TestErrorOfAnotherGroupIsPassedOn(t *testing.T) {
	cause := &dist.TimeoutError{Missing: []int{3}, After: time.Second}
	var got error
	err := dist.Spawn(func(ctx context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		pair, err := dist.NewGroup([]int{1, 2})
		if err != nil {
			return err
		}

		switch rank {
		case 1:
			pair.Communicator().Abort(cause)
		case 2:
			got = dist.Barrier(dist.WithGroup(pair))
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(4))
	require.NoError(t, err)
	aborted, ok := errors.AsType[*dist.AbortedError](got)
	require.True(t, ok, "%v", got)
	require.Equal(t, 0, aborted.By, "rank 1 is the first of its group")
	require.ErrorIs(t, got, cause)
}
