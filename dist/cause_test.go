package dist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errStop = errors.New("the user pressed stop")

// ending is a context that errStop ended, visible from the second look on.
type ending struct {
	context.Context
	looks interleave.Int64
}

func newEnding(t *testing.T) *ending {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	return &ending{Context: ctx}
}

func (e *ending) Err() error {
	if e.looks.Add(1) == 1 {
		return nil
	}
	return e.Context.Err()
}

// The error of a call that a context ends contains the context's error and its cause.
func TestCauseOfAContext(t *testing.T) {
	for name, f := range map[string]func(ctx context.Context) error{
		"call": func(ctx context.Context) error { return dist.Barrier(dist.WithContext(ctx)) },
		"all-reduce": func(ctx context.Context) error {
			return dist.AllReduce([]int{1}, dist.Sum, dist.WithContext(ctx))
		},
		"asynchronous call": func(ctx context.Context) error {
			w, err := dist.BarrierAsync(dist.WithContext(ctx))
			if err != nil {
				return err
			}
			return w.Wait(context.Background())
		},
		"Wait": func(ctx context.Context) error {
			w, err := dist.BarrierAsync()
			if err != nil {
				return err
			}
			ctx.Err() // Wait checks it once
			return w.Wait(ctx)
		},
		"Recv": func(ctx context.Context) error {
			_, err := dist.Recv([]int{1}, 1, 0, dist.WithContext(ctx))
			return err
		},
		"object": func(ctx context.Context) error {
			return dist.BroadcastObject(new(int), 1, dist.WithContext(ctx))
		},
		"group": func(ctx context.Context) error {
			_, err := dist.NewGroup([]int{0, 1}, dist.WithContext(ctx))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, looks := range []int64{0, 1} { // it ends during the wait, or before
				done := make(chan struct{})
				err := spawn(t, initialised(func(_ context.Context, rank int) error {
					if rank == 1 {
						<-done
						return nil
					}
					defer close(done)
					ctx := newEnding(t)
					ctx.looks.Store(looks)
					err := f(ctx)
					assert.ErrorIs(t, err, context.Canceled)
					assert.ErrorIs(t, err, errStop)
					assert.ErrorContains(t, err, "the user pressed stop")
					return nil
				}), dist.WithRanks(2))
				if name != "Wait" { // after which the call continues
					require.NoError(t, err)
				}
			}
		})
	}
}

// The same for a group of one rank, InitProcessGroup and Spawn.
func TestCauseOfASpawn(t *testing.T) {
	ctx := newEnding(t)
	ctx.looks.Store(1)
	done := make(chan struct{})
	err := spawn(t, func(_ context.Context, rank int) error {
		if rank == 1 {
			<-done
			return nil
		}
		defer close(done)
		return dist.InitProcessGroup("ccl")
	}, dist.WithRanks(2), dist.WithSpawnContext(ctx))
	require.ErrorIs(t, err, errStop)
	require.ErrorIs(t, err, context.Canceled)

	err = spawn(t, func(context.Context, int) error { return dist.InitProcessGroup("ccl") }, dist.WithRanks(1), dist.WithSpawnContext(ctx))
	require.ErrorIs(t, err, errStop)
	require.ErrorIs(t, err, context.Canceled)

	err = spawn(t, initialised(func(context.Context, int) error {
		return dist.AllReduce([]int{1}, dist.Sum, dist.WithContext(ctx))
	}), dist.WithRanks(1))
	require.ErrorIs(t, err, errStop)
	require.ErrorIs(t, err, context.Canceled)
}

// The same for processes of a launcher.
func TestCauseOfAJoin(t *testing.T) {
	ours.set(t)
	dist.JoinBy(t, func(ctx context.Context, _ shm.Job) (transport.Endpoint, error) {
		return nil, fmt.Errorf("not joined: %w", context.Cause(ctx)) // as shm.Join does
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	err := spawn(t, func(context.Context, int) error { return dist.InitProcessGroup("ccl") }, dist.WithSpawnContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errStop)

	// The peers of a rank whose context ends get the cause.
	n := newNode(t)
	wait := n.others(t, func(c *ccl.Communicator, err error) {
		if err == nil {
			err = c.Barrier(context.Background())
		}
		assert.ErrorContains(t, err, "aborted by rank 1: ")
		assert.ErrorContains(t, err, "context canceled: the user pressed stop")
	})
	err = spawn(t, initialised(func(context.Context, int) error {
		_, err := dist.Recv([]int{0}, 0, 0, dist.WithContext(newEnding(t)))
		return err
	}))
	wait()
	require.ErrorIs(t, err, errStop)
}

// A worker whose context ended because another failed names that one once.
func TestCauseOfAWorker(t *testing.T) {
	err := spawn(t, func(ctx context.Context, rank int) error {
		if rank == 1 {
			return thisPanics()
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}, dist.WithRanks(2))
	require.ErrorContains(t, err, "rank 0: rank 1: the worker panicked: at the disco")
	var first *dist.RankError
	require.ErrorAs(t, err, &first)
	require.Equal(t, 1, first.Rank)
	require.Equal(t, 1, countStacks(err), "%v", err)
}

func countStacks(err error) int { return strings.Count(err.Error(), "dist_test.thisPanics(") }
