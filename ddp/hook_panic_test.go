package ddp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
)

// A hook whose Start returns no Work, or that panics, fails the step on all ranks, also where the
// program recovers and goes on: no step of one rank meets another step of the others.
func TestHookThatPanics(t *testing.T) {
	everywhere(t, "hook panics", 1, func(t *testing.T, all []outcome) {
		last := len(all) - 1
		for rank, o := range all {
			require.Empty(t, o.Err, "rank %d", rank)
			for i, want := range []string{"Hook.Start has returned no Work", "Hook.Start has returned no Work", "the hook has panicked"} {
				first, second := o.Texts[2*i], o.Texts[2*i+1]
				if len(all) > 1 {
					require.Contains(t, second, want, "rank %d", rank)
				}
				if rank < last {
					require.Contains(t, first, want, "rank %d", rank)
					require.Contains(t, first, fmt.Sprintf("aborted by rank %d: ddp: ", last), "rank %d", rank)
				}
			}
		}
	})
}

func hookPanics(rank, ranks int, o *outcome) error {
	for _, way := range []string{"nil", "start", "finish"} {
		h := &panics{}
		if rank == ranks-1 {
			h.way = way
		}
		r, g, err := three(ddp.Options{Hooks: ddp.Hooks{Float64: h}}, false)
		if err != nil {
			return err
		}
		first := recovered(func() error { return readyAll(r, g) })
		h.way = ""
		second := recovered(func() error { return readyAll(r, g) })
		if first == nil || second == nil && ranks > 1 {
			return fmt.Errorf("%s: the steps end with %v and %v", way, first, second)
		}
		o.Texts = append(o.Texts, fmt.Sprint(first), fmt.Sprint(second))
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// readyAll makes a step.
func readyAll(r *ddp.Reducer, g [][]float64) error {
	for i := range g {
		r.Ready(i)
	}
	return r.Wait(bg)
}

// recovered returns the error of f, or its panic as an error.
func recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("recovered: %v", v)
		}
	}()
	return f()
}

// panics is a hook that panics in its last bucket, or returns nil.
type panics struct{ way string }

func (h *panics) Start(b *ddp.Bucket[float64]) *ccl.Work {
	switch {
	case h.way == "nil" && b.Index == 2:
		return nil
	case h.way == "start" && b.Index == 2:
		panic(errors.New("start is wrong"))
	}
	return startedBy(func(async ccl.CallOption) error {
		return ccl.AllReduce(bg, b.Comm, b.Gradients, b.Gradients, b.Op, async)
	})
}

func (h *panics) Finish(b *ddp.Bucket[float64]) error {
	if h.way == "finish" && b.Index == 2 {
		panic(errors.New("finish is wrong"))
	}
	return nil
}
