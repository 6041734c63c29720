package ddp_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
)

func init() {
	works["join divides by all"] = joinDividesByAll
	works["join ends early"] = joinEndsEarly
	works["join is disabled"] = joinIsDisabled
}

// With DivideByInitialWorldSize ranks that are done count as zeros, with and without hooks.
func TestJoinDividesByAll(t *testing.T) { everywhere(t, "join divides by all", 1, succeeded) }

func joinDividesByAll(rank, ranks int, _ *outcome) error {
	for _, hooks := range []ddp.Hooks{{}, {Float16: negated{}}} {
		sign := 1.0
		if hooks.Float16 != nil {
			sign = -1
		}
		w, b := make([]float64, 1), make([]half.Float16, 1)
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, nil), ddp.Param("b", b, nil)}, ddp.Options{Hooks: hooks})
		if err != nil {
			return err
		}
		step := 0
		err = r.JoinWith(bg, ddp.JoinOptions{DivideByInitialWorldSize: true}, func() error {
			for ; step <= rank; step++ { // rank 0 has one step, and so on
				ddp.Grad[float64](r, 0)[0] = float64(ranks)
				ddp.Grad[half.Float16](r, 1)[0] = half.NewFloat16(8192) // the sum of 7 is no float16
				r.Ready(1)
				r.Ready(0)
				err := r.Wait(bg)
				want := half.NewFloat16(float32(sign * 8192 * float64(ranks-step) / float64(ranks)))
				if err := errors.Join(err, equal("mean", ddp.Grad[float64](r, 0)[0], float64(ranks-step)),
					equal("float16", ddp.Grad[half.Float16](r, 1)[0], want)); err != nil {
					return err
				}
			}
			return nil
		})
		if err := errors.Join(err, equal("steps", r.Stats().Steps, ranks), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// negated is a hook that gives the mean with the other sign.
type negated struct{}

func (negated) Start(b *ddp.Bucket[half.Float16]) *ccl.Work {
	return startedBy(func(async ccl.CallOption) error {
		return ccl.AllReduce(bg, b.Comm, b.Gradients, b.Gradients, b.Op, async)
	})
}

func (negated) Finish(b *ddp.Bucket[half.Float16]) error {
	for i, x := range b.Gradients {
		b.Gradients[i] = half.NewFloat16(-x.Float32())
	}
	return nil
}

// With ThrowOnEarlyTermination all ranks end in the step that the first does not train in, with the same parameters, and
// the Reducer goes on. A train that does not return the error ends with it all the same.
func TestJoinEndsEarly(t *testing.T) {
	everywhere(t, "join ends early", 1, func(t *testing.T, all []outcome) {
		succeeded(t, all)
		for rank, o := range all {
			require.Equal(t, all[0].Texts, o.Texts, "rank %d", rank)
		}
	})
}

func joinEndsEarly(rank, ranks int, o *outcome) error {
	for _, opts := range []ddp.Options{{}, {FindUnused: true}, {BroadcastBuffers: true, Buffers: []ddp.Tensor{ddp.Buffer("m", make([]float32, 1))}}} {
		for _, returns := range []bool{true, false} {
			r, g, err := three(opts, true)
			if err != nil {
				return err
			}
			for range 2 {
				done := 0
				err := r.JoinWith(bg, ddp.JoinOptions{ThrowOnEarlyTermination: true}, func() error {
					for range 2 + rank/2 { // the ranks 0 and 1 are done after two steps
						if _, err := makeStep(r, g, 1); err != nil && returns {
							return fmt.Errorf("train: %w", err)
						} else if err != nil {
							return nil
						}
						done++
					}
					return nil
				})
				early, ok := errors.AsType[*ddp.EarlyTerminationError](err)
				if ok != (ranks > 2) || ok && !slices.Equal(early.Ranks, []int{0, 1}) || !ok && err != nil || done != 2 {
					return fmt.Errorf("returns %v: %d steps, early %v: %w", returns, done, ok, err)
				}
				if ok {
					o.Texts = append(o.Texts, early.Error())
				}
			}
			mean, err := makeStep(r, g, float64(rank)) // the Reducer goes on
			if err := errors.Join(err, equal("mean", mean, float64(ranks-1)/2), r.Verify(bg), r.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// A train that goes on after the end has an error of its next step, and makes none with the others.
func TestJoinGoesOnAfterTheEnd(t *testing.T) {
	errs := spawn(t, 2, func(rank int) error {
		r, g, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		err = r.JoinWith(bg, ddp.JoinOptions{ThrowOnEarlyTermination: true}, func() error {
			if rank == 0 {
				return nil
			}
			_, first := makeStep(r, g, 1)
			require.ErrorAs(t, first, new(*ddp.EarlyTerminationError))
			_, second := makeStep(r, g, 1)
			require.ErrorContains(t, second, "ThrowOnEarlyTermination ends Join there")
			return nil
		})
		require.ErrorAs(t, err, new(*ddp.EarlyTerminationError))
		if err := dist.Barrier(); err != nil { // rank 0 stays as long
			return err
		}
		return r.Wait(bg) // the group has failed
	})
	for rank, err := range errs {
		require.Error(t, err, "rank %d", rank)
	}
}

// With Disable ranks with equally many steps train as without Join, also with Shard, and within it Verify is allowed.
func TestJoinIsDisabled(t *testing.T) { everywhere(t, "join is disabled", 1, succeeded) }

func joinIsDisabled(rank, ranks int, _ *outcome) error {
	for _, shard := range []bool{false, true} {
		r, g, err := three(ddp.Options{Shard: shard}, true)
		if err != nil {
			return err
		}
		failed := errors.New("train has failed")
		err = r.JoinWith(bg, ddp.JoinOptions{Disable: true}, func() error {
			mean, err := makeStep(r, g, float64(rank))
			if !shard {
				err = errors.Join(err, equal("mean", mean, float64(ranks-1)/2))
			}
			return errors.Join(err, r.Verify(bg), failed)
		})
		if !errors.Is(err, failed) {
			return fmt.Errorf("Join returns %w", err)
		}
		_, err = makeStep(r, g, 1) // the group lives on
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Options that ranks do not share are an error on all.
func TestJoinOptionsThatDiffer(t *testing.T) {
	for rank, err := range spawn(t, 2, func(rank int) error {
		r, g, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		return r.JoinWith(bg, ddp.JoinOptions{DivideByInitialWorldSize: rank == 1}, func() error {
			_, err := makeStep(r, g, 1)
			return err
		})
	}) {
		require.ErrorContains(t, err, `"ddp join"`, "rank %d", rank)
		require.ErrorContains(t, err, `"ddp join, DivideByInitialWorldSize"`, "rank %d", rank)
	}
}
