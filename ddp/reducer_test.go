package ddp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
)

// startedBy returns the Work of a call that f makes with an option of its own.
func startedBy(f func(async ccl.CallOption) error) *ccl.Work {
	w := new(ccl.Work)
	_ = f(ccl.WithWork(w)) // w has the error as well
	return w
}

// tiny makes buckets of two parameters.
func tiny() ddp.Options {
	return ddp.Options{FirstBucketBytes: 8, BucketBytes: 50}
}

const steps, batch = 12, 84 // 84 is divided by 1, 2, 3, 4 and 7

// alone trains on one rank without ddp, and returns the losses and parameters.
func alone() (losses, params []float64) {
	n := newNet[float64](0)
	for _, b := range batches(steps, batch) {
		losses = append(losses, n.backward(b, 1, func(int) {}))
		n.update(0.3)
	}
	return losses, n.flat()
}

// What differs between ranks is an error on all of them, and names the first parameter that differs.
func TestMismatch(t *testing.T) {
	base := func() []ddp.Parameter {
		return []ddp.Parameter{
			ddp.Param("a", make([]float32, 6), nil, 2, 3),
			ddp.Param("b", make([]float32, 4), nil),
		}
	}
	for name, c := range map[string]struct {
		change func(p []ddp.Parameter, o *ddp.Options) []ddp.Parameter
		want   string
	}{
		"name": {func(p []ddp.Parameter, _ *ddp.Options) []ddp.Parameter {
			p[1] = ddp.Param("c", make([]float32, 4), nil)
			return p
		}, `parameter 1: "b", float32 [4] on ranks 0, 2; "c", float32 [4] on rank 1`},
		"shape": {func(p []ddp.Parameter, _ *ddp.Options) []ddp.Parameter {
			p[0] = ddp.Param("a", make([]float32, 6), nil, 3, 2)
			return p
		}, `parameter 0: "a", float32 [2 3] on ranks 0, 2; "a", float32 [3 2] on rank 1`},
		"type": {func(p []ddp.Parameter, _ *ddp.Options) []ddp.Parameter {
			p[1] = ddp.Param("b", make([]half.BFloat16, 4), nil)
			return p
		}, `parameter 1: "b", float32 [4] on ranks 0, 2; "b", bfloat16 [4] on rank 1`},
		"hooks": {func(p []ddp.Parameter, o *ddp.Options) []ddp.Parameter {
			o.Hooks.Float32 = ddp.BFloat16()
			return p
		}, "Options.Hooks: none on ranks 0, 2; ddp.compressed[github.com/goccl/goccl/half.BFloat16] of float32 on rank 1"},
		"order": {func(p []ddp.Parameter, _ *ddp.Options) []ddp.Parameter {
			slices.Reverse(p)
			return p
		}, `parameter 0: "a"`},
		"fewer": {func(p []ddp.Parameter, _ *ddp.Options) []ddp.Parameter { return p[:1] }, `parameter 1: "b", float32 [4] on ranks 0, 2; none on rank 1`},
		"options": {func(p []ddp.Parameter, o *ddp.Options) []ddp.Parameter {
			o.FindUnused = true
			return p
		}, "Options.FindUnused: false on ranks 0, 2; true on rank 1"},
		"name of the Reducer": {func(p []ddp.Parameter, o *ddp.Options) []ddp.Parameter {
			o.Name = "other"
			return p
		}, `Options.Name: "ddp" on ranks 0, 2; "other" on rank 1`},
		"form": {func(p []ddp.Parameter, _ *ddp.Options) []ddp.Parameter {
			p[0] = ddp.Param("a", make([]float32, 6), make([]float32, 6), 2, 3)
			p[1] = ddp.Param("b", make([]float32, 4), make([]float32, 4))
			return p
		}, "form of gradients: parts of buckets on ranks 0, 2; the program's own on rank 1"},
		"buffers": {func(p []ddp.Parameter, o *ddp.Options) []ddp.Parameter {
			o.Buffers = []ddp.Tensor{ddp.Buffer("mean", []float32{1})}
			return p
		}, `buffer 0: none on ranks 0, 2; "mean", float32 [1] on rank 1`},
	} {
		t.Run(name, func(t *testing.T) {
			for rank, err := range spawn(t, 3, func(rank int) error {
				var o ddp.Options
				p := base()
				if rank == 1 {
					p = c.change(p, &o)
				}
				_, err := ddp.New(bg, world(), p, o)
				return err
			}) {
				var m *ccl.MismatchError
				require.ErrorAs(t, err, &m, "rank %d", rank)
				require.Contains(t, err.Error(), "ddp: ranks disagree on "+c.want)
			}
		})
	}
}

// A mistake of one rank is an error on all, which names the rank.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		params []ddp.Parameter
		want   string
	}{
		"none":  {nil, "there are no parameters"},
		"twice": {[]ddp.Parameter{ddp.Param("a", []float64{1}, nil), ddp.Param("a", []float64{1}, nil)}, `parameter 0 and parameter 1 have the same name "a": give each its own`},
		"shape": {[]ddp.Parameter{ddp.Param("a", []float64{1}, nil, 2)}, `parameter "a" has the shape [2] and 1 elements`},
		"grad":  {[]ddp.Parameter{ddp.Param("a", []float64{1}, []float64{1, 2})}, `parameter "a" has 1 elements, and its gradient 2`},
		"some":  {[]ddp.Parameter{ddp.Param("a", []float64{1}, []float64{1}), ddp.Param("b", []float64{1}, nil)}, "1 of 2 parameters have a gradient: all or none must have one"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range spawn(t, 2, func(rank int) error {
				params := []ddp.Parameter{ddp.Param("a", []float64{1}, nil)}
				if rank == 1 {
					params = c.params
				}
				_, err := ddp.New(bg, world(), params, ddp.Options{})
				return err
			}) {
				var wrong *ccl.InvalidArgumentError
				require.ErrorAs(t, err, &wrong)
				require.Contains(t, err.Error(), "rank 1: "+c.want)
			}
		})
	}
}

// three makes a Reducer of three parameters of one element, each in a bucket of its own.
func three(opts ddp.Options, views bool) (*ddp.Reducer, [][]float64, error) {
	opts.FirstBucketBytes, opts.BucketBytes = 8, 8
	var params []ddp.Parameter
	grads := make([][]float64, 3)
	for i, name := range []string{"a", "b", "c"} {
		if !views {
			grads[i] = []float64{0}
		}
		params = append(params, ddp.Param(name, []float64{0}, grads[i]))
	}
	r, err := ddp.New(bg, world(), params, opts)
	if err != nil {
		return nil, nil, err
	}
	for i := range grads {
		grads[i] = ddp.Grad[float64](r, i)
	}
	return r, grads, nil
}

// With StaticGraph all steps are like the first.
func TestStaticGraph(t *testing.T) {
	for _, views := range []bool{false, true} {
		for rank, err := range spawn(t, 2, func(rank int) error {
			r, g, err := three(ddp.Options{StaticGraph: true}, views)
			if err != nil {
				return err
			}
			for range 4 {
				g[0][0], g[2][0] = 2, 3
				if rank == 0 {
					r.Ready(0)
				}
				r.Ready(2)
				if err := r.Wait(bg); err != nil {
					return err
				}
				if err := errors.Join(equal("a", g[0][0], 1), equal("c", g[2][0], 3)); err != nil {
					return err
				}
			}
			if rank == 0 {
				r.Ready(0)
			}
			r.Ready(1)
			r.Ready(2)
			err = r.Wait(bg)
			var wrong *ccl.InvalidArgumentError
			if !errors.As(err, &wrong) || wrong.Message != `parameter "b" was ready, and was not in the first step: set FindUnused in place of StaticGraph if steps differ` {
				return fmt.Errorf("got %w", err)
			}
			if rank == 1 { // rank 0 leaves out what it had
				r.Ready(2)
			} else {
				r.Ready(2)
			}
			return r.Wait(bg)
		}) {
			require.ErrorContains(t, err, "ddp: no gradient was ready for a: they were ready in the first step; set FindUnused in place of StaticGraph if steps differ", "rank %d", rank)
		}
	}
}

// A mistake in Ready is an error of Wait, on the rank that made it; the step is completed.
func TestReadyMistakes(t *testing.T) {
	all(t, 2, func(rank int) error {
		r, g, err := three(ddp.Options{}, false)
		if err != nil {
			return err
		}
		texts := []string{
			"parameter 3 was ready, and there are 3, numbered from 0", "parameter -1 was ready, and there are 3, numbered from 0",
			`parameter "b" was ready twice in a step: call Wait between batches, or accumulate them within NoSync`,
		}
		for step, wrong := range []int{3, -1, 1} {
			for i := range g {
				g[i][0] = float64(rank + step)
				r.Ready(i)
			}
			if rank == 1 {
				r.Ready(wrong)
			}
			err := r.Wait(bg)
			var e *ccl.InvalidArgumentError
			if errors.As(err, &e) != (rank == 1) || e != nil && !strings.HasPrefix(e.Message, texts[step]) {
				return fmt.Errorf("got %w", err)
			}
			if err := equal("mean", g[2][0], 0.5+float64(step)); err != nil {
				return err
			}
		}
		return r.Close()
	})
}

// After the first step the buckets have the order in which gradients were ready on rank 0.
func TestRebuild(t *testing.T) {
	all(t, 3, func(rank int) error {
		var h order
		r, g, err := three(ddp.Options{Hooks: ddp.Hooks{Float64: &h}}, false)
		if err != nil {
			return err
		}
		for range 3 {
			for _, i := range []int{1, 0, 2} {
				g[i][0] = float64(rank * i)
				r.Ready(i)
			}
			if err := r.Wait(bg); err != nil {
				return err
			}
			if err := errors.Join(equal("b", g[1][0], 1), equal("c", g[2][0], 2)); err != nil {
				return err
			}
		}
		return errors.Join(equal("order", fmt.Sprint(h), fmt.Sprint(order{2, 1, 0, 1, 0, 2, 1, 0, 2})), r.Close())
	})
}

// order is a hook that notes the parameters of buckets in the order in which they are started.
type order []int

func (o *order) Start(b *ddp.Bucket[float64]) *ccl.Work {
	*o = append(*o, b.Parameters...)
	return startedBy(func(async ccl.CallOption) error {
		return ccl.AllReduce(bg, b.Comm, b.Gradients, b.Gradients, b.Op, async)
	})
}

func (o *order) Finish(*ddp.Bucket[float64]) error { return nil }

// After Join all ranks have the parameters of a rank that trained longest.
func TestJoinShares(t *testing.T) {
	all(t, 3, func(rank int) error {
		v := []float64{0}
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("v", v, nil)}, ddp.Options{})
		if err != nil {
			return err
		}
		err = r.Join(bg, func() error {
			for range rank + 1 {
				ddp.Grad[float64](r, 0)[0] = 1
				r.Ready(0)
				if err := r.Wait(bg); err != nil {
					return err
				}
				v[0] += ddp.Grad[float64](r, 0)[0]
			}
			return nil
		})
		return errors.Join(err, equal("parameter", v[0], 3), r.Close())
	})
}

// If training fails on one rank, Join fails on all.
func TestJoinFails(t *testing.T) {
	for rank, err := range spawn(t, 3, func(rank int) error {
		r, _, err := three(ddp.Options{}, true)
		if err != nil {
			return err
		}
		return r.Join(bg, func() error {
			if rank == 2 {
				return errors.New("no more data")
			}
			if rank == 0 {
				return nil
			}
			for i := range 3 {
				r.Ready(i)
			}
			return r.Wait(bg)
		})
	}) {
		require.ErrorContains(t, err, "no more data", "rank %d", rank)
	}
}

// A warm step allocates nothing, also with a context that can be cancelled.
func TestAllocations(t *testing.T) {
	cancellable, cancel := context.WithCancel(bg)
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": bg, "cancellable": cancellable} {
		t.Run(name, func(t *testing.T) { testAllocations(t, ctx) })
	}
}

func testAllocations(t *testing.T, ctx context.Context) {
	const runs = 100
	for _, form := range []struct{ views, hook bool }{{false, false}, {true, false}, {false, true}} {
		all(t, 2, func(rank int) error {
			var opts ddp.Options
			if form.hook {
				opts.Hooks.Float64 = started{}
			}
			r, g, err := three(opts, form.views)
			if err != nil {
				return err
			}
			step := func() {
				for i := range g {
					r.Ready(2 - i)
				}
				if err := r.Wait(ctx); err != nil {
					panic(err)
				}
			}
			for range 20 {
				step()
			}
			if rank == 1 {
				for range runs + 1 {
					step()
				}
				return r.Close()
			}
			n := testing.AllocsPerRun(runs, step)
			if n > 0.5 { // of both ranks
				return fmt.Errorf("%+v: a step allocates %v times", form, n)
			}
			return r.Close()
		})
	}
}

// started is a hook that starts its call with the same Work in each step.
type started struct{}

func (started) Start(b *ddp.Bucket[float64]) *ccl.Work {
	work, ok := b.State.(*ccl.Work)
	if !ok {
		work = new(ccl.Work)
		b.State = work
	}
	_ = ccl.AllReduce(bg, b.Comm, b.Gradients, b.Gradients, b.Op, ccl.WithWork(work)) // the Work has the error as well
	return work
}

func (started) Finish(*ddp.Bucket[float64]) error { return nil }
