package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// makeStep makes a step of gradients that are all value, and returns one of the means.
func makeStep(r *ddp.Reducer, g [][]float64, value float64) (mean float64, err error) {
	for i := range g {
		g[i][0] = value
		r.Ready(i)
	}
	err = r.Wait(bg)
	return g[1][0], err
}

// If train returns in a step that it has begun, Join fails on all ranks: after Ready, after Ready within NoSync, and after a
// call of Ready whose mistake no Wait has returned.
func TestJoinEndsWithinStep(t *testing.T) {
	everywhere(t, "join ends within a step", 1, func(t *testing.T, all []outcome) {
		for rank, o := range all {
			require.Empty(t, o.Err, "rank %d", rank)
			require.Len(t, o.Texts, 6)
			for i, text := range o.Texts {
				want := "train returned in a step that has begun"
				if i%3 == 2 {
					want = "parameter 3 was ready, and there are 3"
				}
				require.Contains(t, text, want, "rank %d", rank)
			}
		}
	})
}

func joinEndsWithinStep(rank, ranks int, o *outcome) error {
	for _, views := range []bool{false, true} {
		for _, begin := range []func(r *ddp.Reducer) error{
			func(r *ddp.Reducer) error { r.Ready(2); return nil },
			func(r *ddp.Reducer) error { return r.NoSync(func() error { r.Ready(2); return nil }) },
			func(r *ddp.Reducer) error { r.Ready(3); return nil },
		} {
			r, g, err := three(ddp.Options{}, views)
			if err != nil {
				return err
			}
			err = r.Join(bg, func() error {
				for range 2 + rank {
					if _, err := makeStep(r, g, 1); err != nil {
						return err
					}
				}
				if rank == ranks-1 {
					return begin(r)
				}
				return nil
			})
			var own *ccl.InvalidArgumentError
			var aborted *dist.AbortedError
			if last := rank == ranks-1; last && !errors.As(err, &own) || errors.As(err, &aborted) == last {
				return fmt.Errorf("got %w", err)
			}
			o.Texts = append(o.Texts, err.Error())
			if err := r.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Join within Join, within NoSync, and in a step that has begun is an error. If all ranks make the mistake, nothing else changes:
// the outer Join goes on, and the step is completed.
func TestJoinRefused(t *testing.T) { everywhere(t, "join refused", 1, succeeded) }

func joinRefused(rank, ranks int, _ *outcome) error {
	for _, views := range []bool{false, true} {
		r, g, err := three(ddp.Options{}, views)
		if err != nil {
			return err
		}
		refused := func(text string) error {
			called := false
			err := r.Join(bg, func() error { called = true; return nil })
			var e *ccl.InvalidArgumentError
			if !errors.As(err, &e) || e.Message != text || called {
				return fmt.Errorf("called %v, want %q: %w", called, text, err)
			}
			return nil
		}
		err = r.Join(bg, func() error {
			if err := refused("Join within Join: a rank joins once"); err != nil {
				return err
			}
			for step := range rank + 1 { // rank 0 has one step, and so on
				mean, err := makeStep(r, g, float64(rank))
				if err := errors.Join(err, equal("mean of those that train", mean, float64(step+ranks-1)/2)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := r.NoSync(func() error { return refused("Join within NoSync: its steps would not be reduced") }); err != nil {
			return err
		}
		r.Ready(2)
		if err := refused("a step has begun by Ready: call Wait first"); err != nil {
			return err
		}
		g[0][0], g[1][0] = float64(rank), float64(rank)
		r.Ready(0)
		r.Ready(1)
		if err := errors.Join(r.Wait(bg), equal("mean", g[1][0], float64(ranks-1)/2), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// If the context of Join ends while a rank is out of data, the rank leaves with the context's error, and Join fails on the
// others, which get its rank.
func TestJoinCancelled(t *testing.T) {
	returned := make(chan struct{})
	errs := make([]error, 3)
	all(t, 3, func(rank int) error {
		r, g, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		errs[rank] = r.Join(ctx, func() error {
			switch rank {
			case 0:
				cancel()
				return nil
			case 1: // out of data as well
				return nil
			}
			<-returned
			_, err := makeStep(r, g, 1)
			return err
		})
		if rank == 0 {
			close(returned)
		}
		return dist.Barrier()
	})
	require.ErrorIs(t, errs[0], context.Canceled)
	for _, rank := range []int{1, 2} {
		var aborted *dist.AbortedError
		require.ErrorAs(t, errs[rank], &aborted, "rank %d", rank)
		require.Equal(t, 0, aborted.By)
	}
}

// If train panics, and the program goes on, Join fails on the other ranks, and the Reducer is in Join no more.
func TestJoinPanics(t *testing.T) {
	var errs [2]error
	all(t, 2, func(rank int) error {
		r, _, err := three(ddp.Options{FindUnused: true}, true)
		if err != nil {
			return err
		}
		func() {
			defer func() { _ = recover() }()
			errs[rank] = r.Join(bg, func() error {
				if rank == 1 {
					r.Ready(2)
					panic("no data")
				}
				return nil
			})
		}()
		if rank == 1 {
			errs[rank] = r.Wait(bg)
		}
		return errors.Join(dist.Barrier(), r.Close())
	})
	for rank, err := range errs {
		var aborted *dist.AbortedError
		require.ErrorAs(t, err, &aborted, "rank %d", rank)
		require.Equal(t, 1, aborted.By)
	}
}

// A Reducer that train closes is an error of Join on all ranks.
func TestClosedWithinJoin(t *testing.T) {
	for rank, err := range spawn(t, 2, func(rank int) error {
		r, _, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		return r.Join(bg, func() error {
			if rank == 1 {
				return r.Close()
			}
			return nil
		})
	}) {
		require.Error(t, err, "rank %d", rank)
		if rank == 1 {
			require.ErrorIs(t, err, ccl.ErrClosed)
		}
	}
}

// The state of an optimizer that is a buffer, or made by NewOptimizerState, is the same on all ranks after Join, so that
// their parameters stay equal in the steps that follow. Without it they drift apart.
func TestOptimizerAfterJoin(t *testing.T) {
	for kind, isShared := range map[string]bool{"own": false, "buffer": true, "state": true} {
		for _, err := range spawn(t, 3, func(rank int) error { return trainWithMomentum(rank, kind) }) {
			_, drifted := errors.AsType[*ccl.MismatchError](err)
			require.Equal(t, isShared, !drifted, "%v", err)
			require.True(t, err == nil || drifted, "%v", err)
		}
	}
}

// trainWithMomentum makes steps within Join, another number on each rank, and one after it.
func trainWithMomentum(rank int, kind string) error {
	weight, gradient, momentum := []float64{1}, []float64{0}, []float64{0}
	var opts ddp.Options
	if kind == "buffer" {
		opts.Buffers = []ddp.Tensor{ddp.Buffer("momentum", momentum)}
	}
	r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", weight, gradient)}, opts)
	if err != nil {
		return err
	}
	if kind == "state" {
		states, err := ddp.NewOptimizerState[float64](r, "momentum")
		if err != nil {
			return err
		}
		momentum = states[0]
	}
	makeSteps := func(count int) error {
		for range count {
			gradient[0] = weight[0]
			r.Ready(0)
			if err := r.Wait(bg); err != nil {
				return err
			}
			momentum[0] = 0.9*momentum[0] + gradient[0]
			weight[0] -= 0.1 * momentum[0]
		}
		return nil
	}
	if err := r.Join(bg, func() error { return makeSteps(2 + rank%2) }); err != nil {
		return err
	}
	if err := errors.Join(r.Verify(bg), makeSteps(1)); err != nil {
		return err
	}
	return r.Verify(bg)
}

// A train that closes the Reducer is told so by Join, and so are the other ranks.
func TestJoinThatCloses(t *testing.T) {
	for rank, err := range spawn(t, 2, func(rank int) error {
		r, g, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		return r.Join(bg, func() error {
			if rank == 1 {
				return r.Close()
			}
			_, err := makeStep(r, g, 1)
			return err
		})
	}) {
		require.ErrorContains(t, err, "ddp: Join: the Reducer is closed", "rank %d", rank)
	}
}

// Ranks that have made state of the optimizer in two orders do not get one another's after Join.
func TestOptimizerStateInTwoOrders(t *testing.T) {
	for rank, err := range spawn(t, 2, func(rank int) error {
		r, g, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		names := []string{"first", "second"}
		for i := range names {
			if _, err := ddp.NewOptimizerState[float64](r, names[(i+rank)%2]); err != nil {
				return err
			}
		}
		return r.Join(bg, func() error {
			_, err := makeStep(r, g, 1)
			return err
		})
	}) {
		var m *ccl.MismatchError
		require.ErrorAs(t, err, &m, "rank %d", rank)
		require.ErrorContains(t, err, ".second", "rank %d", rank)
	}
}
