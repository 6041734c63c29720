package ddp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

var bg = context.Background()

// spawn runs work on goroutine ranks and returns the error of each. The ranks' own errors do not end the test.
func spawn(t testing.TB, ranks int, work func(rank int) error) []error {
	t.Helper()
	errs := make([]error, ranks)
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl"); err != nil {
			return err
		}
		errs[rank] = work(rank)
		return errs[rank]
	}, dist.WithRanks(ranks))
	if err != nil {
		for _, e := range errs {
			if e != nil {
				return errs
			}
		}
		require.NoError(t, err)
	}
	return errs
}

// all is spawn for work that fails nowhere.
func all(t *testing.T, ranks int, work func(rank int) error) {
	t.Helper()
	for rank, err := range spawn(t, ranks, work) {
		require.NoError(t, err, "rank %d", rank)
	}
}

// net is a chain of layers without nonlinearities but squares, so that each gradient depends on all parameters:
// y = w2 * (w1*x + b1)^2 + b2, with vectors.
type net[T float32 | float64] struct {
	names  []string
	values [][]T
	grads  [][]T
}

const width = 5

func newNet[T float32 | float64](seed uint64) *net[T] {
	r := rand.New(rand.NewPCG(seed, 1))
	n := &net[T]{names: []string{"w1", "b1", "w2", "b2"}}
	for _, length := range []int{width, width, width, 1} {
		v := make([]T, length)
		for i := range v {
			v[i] = T(r.Float64() - 0.5)
		}
		n.values = append(n.values, v)
		n.grads = append(n.grads, make([]T, length))
	}
	return n
}

// parameters describes the net to ddp. With views the gradients are those that ddp makes.
func (n *net[T]) parameters(views bool) []ddp.Parameter {
	var params []ddp.Parameter
	for i, name := range n.names {
		grad := n.grads[i]
		if views {
			grad = nil
		}
		params = append(params, ddp.Param(name, n.values[i], grad))
	}
	return params
}

// adopt uses the gradients of a Reducer.
func (n *net[T]) adopt(r *ddp.Reducer) {
	for i := range n.grads {
		n.grads[i] = ddp.Grad[T](r, i)
	}
}

// backward adds the gradients of the mean loss of samples, divided by share, and calls ready for each parameter.
func (n *net[T]) backward(samples [][2]float64, share float64, ready func(int)) (loss float64) {
	w1, b1, w2, b2 := n.values[0], n.values[1], n.values[2], n.values[3]
	for _, s := range samples {
		x, want := T(s[0]), T(s[1])
		y := b2[0]
		for i := range w1 {
			h := w1[i]*x + b1[i]
			y += w2[i] * h * h
		}
		e := y - want
		k := 1 / (float64(len(samples)) * share)
		loss += float64(e*e) * k
		g := T(2*k) * e
		n.grads[3][0] += g
		for i := range w1 {
			h := w1[i]*x + b1[i]
			n.grads[2][i] += g * h * h
			n.grads[0][i] += g * w2[i] * 2 * h * x
			n.grads[1][i] += g * w2[i] * 2 * h
		}
	}
	for i := range n.grads {
		ready(len(n.grads) - 1 - i)
	}
	return loss
}

// update makes a step against the gradients and clears them.
func (n *net[T]) update(rate T) {
	for i, v := range n.values {
		for j := range v {
			v[j] -= rate * n.grads[i][j]
		}
		clear(n.grads[i])
	}
}

// flat returns all parameters.
func (n *net[T]) flat() (all []T) {
	for _, v := range n.values {
		all = append(all, v...)
	}
	return all
}

// batches returns global batches of samples.
func batches(count, size int) [][][2]float64 {
	r := rand.New(rand.NewPCG(5, 5))
	made := make([][][2]float64, count)
	for i := range made {
		for range size {
			x := r.Float64()
			made[i] = append(made[i], [2]float64{x, 3*x*x - x + 0.1*r.Float64()})
		}
	}
	return made
}

func equal[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// loadOf returns a Load of samples.
func loadOf(samples [][2]float64) func(context.Context, []int) ([][2]float64, error) {
	return func(_ context.Context, indices []int) (batch [][2]float64, err error) {
		for _, i := range indices {
			batch = append(batch, samples[i])
		}
		return batch, nil
	}
}

// containsAll reports whether a text contains all parts.
func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
