package dist_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/stretchr/testify/require"
)

var errNoShard = errors.New("no shard")

// When a worker fails, the calls of all others fail by it, also those with the context that ends because of
// it, and whether the worker has left its group before or not.
func TestCallsWithTheWorkersContextNameTheRankThatFailed(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context) error{
		"Work.Wait": func(ctx context.Context) error {
			w, err := dist.AllReduceAsync([]int{1}, dist.Sum)
			if err != nil {
				return err
			}
			return w.Wait(ctx)
		},
		"call": func(ctx context.Context) error {
			return dist.AllReduce([]int{1}, dist.Sum, dist.WithContext(ctx))
		},
		"call after an asynchronous one": func(ctx context.Context) error {
			if _, err := dist.AllReduceAsync([]int{1}, dist.Sum); err != nil {
				return err
			}
			return dist.Barrier(dist.WithContext(ctx))
		},
		"call after the context has ended": func(ctx context.Context) error {
			<-ctx.Done()
			return dist.Barrier(dist.WithContext(ctx))
		},
		"Recv": func(ctx context.Context) error {
			_, err := dist.Recv([]int{1}, 1, 0, dist.WithContext(ctx))
			return err
		},
		"repeated": func(ctx context.Context) error {
			g, err := dist.Default()
			if err != nil {
				return err
			}
			var w ccl.Work
			_ = ccl.AllReduce(ctx, g.Communicator(), []int{1}, []int{1}, ccl.Sum, ccl.WithWork(&w))
			return w.Wait(ctx)
		},
		"group made of it": func(ctx context.Context) error {
			for {
				g, err := dist.NewGroup(nil, dist.WithContext(ctx))
				if err != nil {
					return err
				}
				if err := dist.Barrier(dist.WithGroup(g), dist.WithContext(ctx)); err != nil {
					return err
				}
			}
		},
	} {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", leaves: ", leaves), func(t *testing.T) {
				for range 50 {
					err := spawn(t, func(ctx context.Context, rank int) (err error) {
						if err := dist.InitProcessGroup("ccl"); err != nil {
							return err
						}
						if leaves {
							defer func() { err = errors.Join(err, dist.DestroyProcessGroup()) }()
						}
						if rank == 1 {
							return errNoShard
						}
						failed := call(ctx)
						if lost, ok := errors.AsType[*dist.PeerLostError](failed); ok && leaves && name == "Recv" && lost.Rank == 1 {
							return nil // a message does not wait for the end of the worker that left
						}
						if aborted, ok := errors.AsType[*dist.AbortedError](failed); !ok || aborted.By != 1 || !errors.Is(aborted.Cause, errNoShard) {
							return fmt.Errorf("not by rank 1: %w", failed)
						}
						return nil
					}, dist.WithRanks(3))
					require.ErrorIs(t, err, errNoShard)
					require.NotContains(t, err.Error(), "not by rank 1")
				}
			})
		}
	}
}

// A context of the program's own that ends still ends a Wait, whose call goes on.
func TestWaitWithAnEndedContextOfItsOwn(t *testing.T) {
	waited := make(chan struct{})
	require.NoError(t, spawn(t, initialised(func(_ context.Context, rank int) error {
		if rank == 1 {
			<-waited
			return dist.Barrier()
		}
		w, err := dist.BarrierAsync()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errStop)
		err = w.Wait(ctx)
		close(waited)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errStop) {
			return fmt.Errorf("wait: %w", err)
		}
		return w.Wait(context.Background())
	}), dist.WithRanks(2)))
}

// The first error of Spawn is that of the rank whose doing it is, also where the error numbers ranks as a group
// does that could not be made, and where most ranks have brought one memory.
func TestFirstErrorIsTheCause(t *testing.T) {
	t.Setenv("SHAPES", "unseated")
	first := func(err error) int {
		rank, ok := errors.AsType[*dist.RankError](err)
		require.True(t, ok, "%v", err)
		return rank.Rank
	}
	for range 5 {
		over := make(chan struct{})
		err := spawn(t, initialised(func(_ context.Context, rank int) error {
			_, err := dist.NewGroup([]int{1, 2})
			switch rank {
			case 1:
				close(over)
			default: // if their workers ended before, rank 1 would get that as the failure of the group of all
				<-over
			}
			return err
		}, dist.WithTransport("shapes")), dist.WithRanks(3))
		require.Equal(t, 2, first(err), "%v", err)
		require.ErrorContains(t, err, "aborted by rank 1")
		require.ErrorContains(t, err, " (of the job: rank 1 is 2)")
	}

	shared := make([]int, 1)
	err := spawn(t, initialised(func(_ context.Context, rank int) error {
		if rank == 0 {
			return dist.AllReduce(make([]int, 1), dist.Sum)
		}
		return dist.AllReduce(shared, dist.Sum)
	}), dist.WithRanks(4))
	require.NotZero(t, first(err), "%v", err)
}
