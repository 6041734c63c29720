package ccl_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// calls has one call of each kind on a communicator.
var calls = map[string]func(ctx context.Context, c *ccl.Communicator) error{
	"AllReduce": func(ctx context.Context, c *ccl.Communicator) error {
		return ccl.AllReduce(ctx, c, make([]int32, 9), make([]int32, 9), ccl.Sum)
	},
	"AllReduceCoalesced": func(ctx context.Context, c *ccl.Communicator) error {
		return ccl.AllReduceCoalesced(ctx, c, [][]int32{make([]int32, 9)}, ccl.Sum)
	},
	"AllGather": func(ctx context.Context, c *ccl.Communicator) error {
		return ccl.AllGather(ctx, c, make([]int32, 1), make([]int32, max(c.Size(), 1)))
	},
	"AllToAllV": func(ctx context.Context, c *ccl.Communicator) error {
		none := make([]int, c.Size())
		return ccl.AllToAllV(ctx, c, []int32{}, none, nil, []int32{}, none, nil)
	},
	"Broadcast": func(ctx context.Context, c *ccl.Communicator) error {
		return ccl.Broadcast(ctx, c, make([]int32, 1), 0)
	},
	"Barrier": func(ctx context.Context, c *ccl.Communicator) error { return c.Barrier(ctx) },
	"GatherV": func(ctx context.Context, c *ccl.Communicator) error {
		return ccl.GatherV(ctx, c, []int32{}, []int32{}, nil, nil, 0)
	},
	"AllReduceAsync": func(ctx context.Context, c *ccl.Communicator) error {
		return started(func(async ccl.CallOption) error {
			return ccl.AllReduce(ctx, c, make([]int32, 9), make([]int32, 9), ccl.Sum, async)
		}).Wait(bg)
	},
	"behind the queue": func(ctx context.Context, c *ccl.Communicator) error {
		w := started(func(async ccl.CallOption) error { return c.Barrier(ctx, async) })
		return errors.Join(c.Barrier(ctx), w.Wait(bg))
	},
	"Split":    func(ctx context.Context, c *ccl.Communicator) error { _, err := c.Split(ctx, 0, 0); return err },
	"NewGroup": func(ctx context.Context, c *ccl.Communicator) error { _, err := c.NewGroup(ctx, []int{0}); return err },
	"CreateSharedRegion": func(ctx context.Context, c *ccl.Communicator) error {
		_, err := ccl.CreateSharedRegion[int32](ctx, c, 1)
		return err
	},
	"Alloc": func(ctx context.Context, c *ccl.Communicator) error {
		_, err := ccl.Alloc[int32](ctx, c, 1)
		return err
	},
	"Send": func(ctx context.Context, c *ccl.Communicator) error { return ccl.Send(ctx, c, make([]int32, 1), 0, 0) },
	"Recv": func(ctx context.Context, c *ccl.Communicator) error {
		_, err := ccl.Recv(ctx, c, make([]int32, 1), 0, 0)
		return err
	},
	"Isend": func(ctx context.Context, c *ccl.Communicator) error {
		return ccl.Isend(ctx, c, make([]int32, 1), 0, 0).Wait(bg)
	},
	"Irecv": func(ctx context.Context, c *ccl.Communicator) error {
		return ccl.Irecv(ctx, c, make([]int32, 1), 0, 0).Wait(bg)
	},
}

// A nil context is refused; if all ranks refuse it, the group lives on.
func TestNilContext(t *testing.T) {
	var none context.Context
	refused := func(err error) error {
		if _, ok := errors.AsType[*ccl.InvalidArgumentError](err); !ok {
			return errors.Join(errors.New("want *InvalidArgumentError"), err)
		}
		return nil
	}
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2} {
			g := group(t, connect, n)
			for name, call := range calls {
				errs := each(n, func(r int) error { return refused(call(none, g[r])) })
				require.NoError(t, errors.Join(errs...), name)
			}
			allSum(t, g, 10)
			errs := each(n, func(r int) error {
				w := started(func(async ccl.CallOption) error { return g[r].Barrier(bg, async) })
				return errors.Join(refused(w.Wait(none)), refused(g[r].Drain(none)), w.Wait(bg))
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
	eps := local.New(1)
	_, err := ccl.New(none, eps[0])
	require.NoError(t, refused(err))
	_, ok := errors.AsType[*transport.InitializationFailedError](err)
	require.True(t, ok)
}

// Every error of a call is a *CallError: of an ended context, a failed group and a closed one.
func TestErrorsAreCallErrors(t *testing.T) {
	ended, cancel := context.WithCancel(bg)
	cancel()
	everyWorld(t, func(t *testing.T, connect connector) {
		for name, call := range calls {
			g := group(t, connect, 2)
			requireCallErrors := func(when string, ctx context.Context) {
				for r, err := range each(2, func(r int) error { return call(ctx, g[r]) }) {
					_, ok := errors.AsType[*ccl.CallError](err)
					require.True(t, ok, "%s, %s, rank %d: got %v", name, when, r, err)
				}
			}
			requireCallErrors("the context has ended", ended)
			g[0].Abort(errors.New("enough"))
			requireCallErrors("the group has failed", bg)
			for _, c := range g {
				c.Close()
			}
			requireCallErrors("closed", bg)
		}
	})
}

// Calls on a communicator that New has not made return ErrInvalidCommunicator; its other methods
// return zero values.
func TestZeroCommunicator(t *testing.T) {
	for name, call := range calls {
		require.ErrorIs(t, call(bg, new(ccl.Communicator)), ccl.ErrInvalidCommunicator, name)
	}
	var zero ccl.Communicator
	zero.Abort(errors.New("no group"))
	require.NoError(t, errors.Join(zero.Err(), zero.Close(), zero.Close())) // TestDrainRefuses has Drain
	require.Zero(t, zero.Transport())
	require.Zero(t, zero.Size())
	require.Nil(t, zero.Selector())
	require.Zero(t, zero.LastChoice())
	require.Zero(t, zero.GlobalRank(0))
	require.Zero(t, zero.Name())
}
