package ddp_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// After its end every method of a Reducer returns an error, or nil where it returns a gradient, and runs no function of
// the program: after Close, after the end of its group, also if another takes its place, and in a step that has begun.
func TestAfterTheEnd(t *testing.T) { everywhere(t, "after the end", 1, succeeded) }

func afterTheEnd(_, _ int, _ *outcome) error {
	for _, way := range []struct {
		name string
		end  func(r *ddp.Reducer, c *ccl.Communicator) error
	}{
		{"closed", func(r *ddp.Reducer, _ *ccl.Communicator) error { return r.Close() }},
		{"group", func(_ *ddp.Reducer, c *ccl.Communicator) error { return c.Close() }},
		{"destroyed", func(*ddp.Reducer, *ccl.Communicator) error { return dist.DestroyProcessGroup() }},
		{"anew", func(*ddp.Reducer, *ccl.Communicator) error {
			return errors.Join(dist.DestroyProcessGroup(), dist.InitProcessGroup("ccl"))
		}},
	} {
		for _, views := range []bool{false, true} {
			for ready := range 2 {
				if err := useEnded(way.end, views, ready); err != nil {
					return fmt.Errorf("%s, views %v, %d gradients ready before: %w", way.name, views, ready, err)
				}
				if !dist.IsInitialized() {
					if err := dist.InitProcessGroup("ccl"); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// useEnded ends a Reducer, with some gradients ready, and calls its methods.
func useEnded(end func(*ddp.Reducer, *ccl.Communicator) error, views bool, ready int) error {
	h := &closing{end: func(*ccl.Communicator) {}}
	r, g, err := three(ddp.Options{Hooks: ddp.Hooks{Float64: h}}, views)
	if err != nil {
		return err
	}
	for i := range g {
		g[i][0] = 3
		r.Ready(i)
	}
	if err := r.Wait(bg); err != nil {
		return err
	}
	for i := range ready {
		r.Ready(2 - i)
	}
	if err := end(r, h.comm); err != nil && !errors.As(err, new(*ccl.UnfinishedError)) {
		return err
	}
	return callEnded(r)
}

// callEnded calls the methods of a Reducer that has ended.
func callEnded(r *ddp.Reducer) error {
	r.Ready(1)
	called := false
	f := func() error { called = true; return nil }
	_, clipped := r.ClipGradNorm(1)
	_, state := ddp.NewOptimizerState[float64](r, "m")
	_, outer := ddp.NewOuter(r, 1, 0)
	stepped := ddp.Step(bg, r, func(ddp.Part[float64]) { called = true })
	path := filepath.Join(os.TempDir(), fmt.Sprint("goccl-ddp-ended-", os.Getpid()))
	_, begun := r.SaveAsync(bg, path, nil)
	_, latest := r.LoadLatest(bg, path, nil)
	for name, err := range map[string]error{
		"Wait": r.Wait(bg), "NoSync": r.NoSync(f), "Join": r.Join(bg, f), "disabled": r.JoinWith(bg, ddp.JoinOptions{Disable: true}, f), "ClipGradNorm": clipped,
		"Save": r.Save(bg, path, nil), "Load": r.Load(bg, path, nil), "Step": stepped, "AverageParameters": r.AverageParameters(bg),
		"NewOptimizerState": state, "NewOuter": outer, "SaveAsync": begun, "LoadLatest": latest,
	} {
		if !errors.Is(err, ccl.ErrClosed) {
			return fmt.Errorf("%s after the end: %w", name, err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		return errors.New("Save has written a file")
	}
	if err := r.Close(); err != nil && !errors.Is(err, dist.ErrNotInitialized) {
		return err
	}
	return errors.Join(equal("called", called, false), equal("is nil", ddp.Grad[float64](r, 0) == nil, true),
		equal("steps", r.Stats().Steps, 1))
}

// The memory of a Reducer lives as long as a method that uses it: when the group ends within Ready or Wait, the hook
// still writes to its bucket.
func TestEndsWithinMethods(t *testing.T) { everywhere(t, "ends within methods", 1, succeeded) }

func endsWithinMethods(_, _ int, _ *outcome) error {
	for _, views := range []bool{false, true} {
		for _, inFinish := range []bool{false, true} {
			h := &closing{end: func(*ccl.Communicator) { _ = dist.DestroyProcessGroup() }, inFinish: inFinish, inStart: !inFinish}
			r, g, err := three(ddp.Options{Hooks: ddp.Hooks{Float64: h}}, views)
			if err != nil {
				return err
			}
			for i := range g {
				r.Ready(2 - i)
			}
			if err := r.Wait(bg); err == nil { // a rank that ends first is lost to the others
				return fmt.Errorf("views %v, in Finish %v: the step has succeeded", views, inFinish)
			}
			if err := errors.Join(equal("is nil", ddp.Grad[float64](r, 0) == nil, true), dist.InitProcessGroup("ccl")); err != nil {
				return err
			}
		}
	}
	return nil
}

// closing is a hook that ends the group, and then uses the bucket.
type closing struct {
	comm              *ccl.Communicator // of the buckets
	end               func(*ccl.Communicator)
	inStart, inFinish bool
}

func (h *closing) Start(b *ddp.Bucket[float64]) *ccl.Work {
	h.comm = b.Comm
	if h.inStart {
		h.end(b.Comm)
	}
	for i := range b.Gradients {
		b.Gradients[i]++
	}
	return startedBy(func(async ccl.CallOption) error {
		return ccl.AllReduce(bg, b.Comm, b.Gradients, b.Gradients, b.Op, async)
	})
}

func (h *closing) Finish(b *ddp.Bucket[float64]) error {
	if h.inFinish {
		h.end(b.Comm)
	}
	for i := range b.Gradients {
		b.Gradients[i]++
	}
	return nil
}
