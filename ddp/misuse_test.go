package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// A Reducer of some ranks, in another order, averages and has checkpoints as one of all ranks.
func TestSubgroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	all(t, 4, func(rank int) error {
		group, err := dist.Split(rank%2, -rank)
		if err != nil {
			return err
		}
		data := []float64{float64(rank)}
		r, err := ddp.New(bg, group, []ddp.Parameter{ddp.Param("a", data, nil)}, ddp.Options{})
		if err != nil {
			return err
		}
		if err := equal("parameter", data[0], float64(2+rank%2)); err != nil { // of the group's rank 0
			return err
		}
		own := fmt.Sprint(path, rank%2)
		if err := r.Save(bg, own, rank); err != nil {
			return err
		}
		data[0] = 0
		var writer int
		if err := r.Load(bg, own, &writer); err != nil {
			return err
		}
		ddp.Grad[float64](r, 0)[0] = float64(rank)
		r.Ready(0)
		err = r.Wait(bg)
		return errors.Join(err, equal("state", writer, 2+rank%2), equal("loaded", data[0], float64(2+rank%2)),
			equal("mean", ddp.Grad[float64](r, 0)[0], float64(1+rank%2)), r.Close())
	})
}

// A second Close does nothing, also after one that has failed or ended a step. Close after the end of the default group is an error.
func TestCloseTwice(t *testing.T) {
	all(t, 2, func(int) error {
		r, _, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		return errors.Join(r.Close(), r.Close())
	})
	all(t, 2, func(int) error {
		r, _, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		r.Ready(0)
		return errors.Join(r.Close(), r.Close())
	})
	all(t, 2, func(int) error {
		r, _, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		if err := dist.DestroyProcessGroup(); err != nil {
			return err
		}
		if err := r.Close(); !errors.Is(err, dist.ErrNotInitialized) {
			return fmt.Errorf("closed after the default group: %w", err)
		}
		return r.Close()
	})
}

// What was accumulated within NoSync counts, also for parameters that the last batch leaves out.
func TestNoSyncFindsUsed(t *testing.T) {
	for _, views := range []bool{false, true} {
		for _, opts := range []ddp.Options{{FindUnused: true}, {StaticGraph: true}} {
			all(t, 2, func(rank int) error {
				r, g, err := three(opts, views)
				if err != nil {
					return err
				}
				err = r.NoSync(func() error {
					g[0][0] = float64(rank + 1)
					return r.NoSync(func() error { r.Ready(0); return r.Wait(bg) })
				})
				if err != nil {
					return err
				}
				g[2][0] = 5
				r.Ready(2)
				err = r.Wait(bg)
				return errors.Join(err, equal("a", g[0][0], 1.5), equal("c", g[2][0], 5), r.Close())
			})
		}
	}
}

// If the context of a Wait ends, or a hook fails, the step fails on all ranks.
func TestStepOfOneRankFails(t *testing.T) {
	broken := errors.New("broken")
	errs := make([]error, 3)
	all(t, 3, func(rank int) error {
		r, _, err := three(ddp.Options{FindUnused: true}, true)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(bg)
		defer cancel(nil)
		if rank == 1 {
			cancel(broken)
		} else {
			for i := range 3 {
				r.Ready(i)
			}
		}
		for errs[rank] == nil { // a step may end on a rank before rank 1 gives up: then a later one fails
			errs[rank] = r.Wait(ctx)
		}
		return dist.Barrier()
	})
	require.ErrorIs(t, errs[1], context.Canceled)
	for _, rank := range []int{0, 2} {
		var aborted *dist.AbortedError
		require.ErrorAs(t, errs[rank], &aborted, "rank %d", rank)
		require.Equal(t, 1, aborted.By)
	}

	all(t, 2, func(rank int) error {
		h := failing{rank == 1}
		r, _, err := three(ddp.Options{Hooks: ddp.Hooks{Float64: h}, BroadcastBuffers: true, Buffers: []ddp.Tensor{ddp.Buffer("one", []float64{1})}}, true)
		if err != nil {
			return err
		}
		for i := range 3 {
			r.Ready(i)
		}
		errs[rank] = r.Wait(bg)
		return dist.Barrier()
	})
	require.ErrorIs(t, errs[1], errHook)
	require.ErrorContains(t, errs[0], errHook.Error())
}

var errHook = errors.New("the hook is broken")

// failing is a hook that fails on one rank.
type failing struct{ fails bool }

func (failing) Start(b *ddp.Bucket[float64]) *ccl.Work {
	return startedBy(func(async ccl.CallOption) error {
		return ccl.AllReduce(bg, b.Comm, b.Gradients, b.Gradients, b.Op, async)
	})
}

func (h failing) Finish(*ddp.Bucket[float64]) error {
	if h.fails {
		return errHook
	}
	return nil
}

// The buckets of a step are asynchronous calls. The error of one that fails says which line of the program waited for it.
func TestFailedStepSaysWhere(t *testing.T) {
	_, file, line, _ := runtime.Caller(0)
	for at, step := range map[int]func(r *ddp.Reducer) error{
		line + 3: func(r *ddp.Reducer) error {
			return r.Wait(bg)
		},
		line + 5: func(r *ddp.Reducer) error { return r.Join(bg, func() error { return nil }) },
	} {
		errs := spawn(t, 2, func(rank int) error {
			r, _, err := three(ddp.Options{FindUnused: true}, true)
			if err != nil {
				return err
			}
			if rank == 1 {
				return errors.New("no data")
			}
			return step(r)
		})
		require.ErrorContains(t, errs[0], "aborted by rank 1: no data")
		require.ErrorContains(t, errs[0], fmt.Sprintf("waited for at ddp/misuse_test.go:%d", at))
		var call *ccl.CallError
		require.ErrorAs(t, errs[0], &call)
		require.True(t, call.Waited)
		require.Equal(t, file, call.File)
		require.Equal(t, at, call.Line)
	}
}

// Checkpoints are refused within Join.
func TestCheckpointWithinJoin(t *testing.T) {
	for _, err := range spawn(t, 2, func(rank int) error {
		r, _, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		return r.Join(bg, func() error {
			if rank == 0 {
				return nil
			}
			return r.Save(bg, filepath.Join(t.TempDir(), "c"), nil)
		})
	}) {
		require.ErrorContains(t, err, "ddp: Save: it is called within Join, where ranks that are done make steps only: call it before or after, with all ranks")
	}
}
