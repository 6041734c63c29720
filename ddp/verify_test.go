package ddp_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
)

// Verify succeeds on all ranks or fails on all, with the first parameter that differs in a bit, and
// the ranks on which it does.
func TestVerify(t *testing.T) {
	everywhere(t, "verify", 2, func(t *testing.T, all []outcome) {
		for rank, o := range all {
			require.Contains(t, o.Err, `ddp: ranks disagree on parameter 1: "b", CRC `, "rank %d", rank)
			require.Contains(t, o.Err, fmt.Sprintf("on rank %d; a rank has changed one alone, or has allocated a gradient anew, which it then passes to ReadyGrad", len(all)-1), "rank %d", rank)
			require.NotContains(t, o.Err, "parameter 2")
		}
	})
}

func verify(rank, ranks int, _ *outcome) error {
	values := [][]float64{{1}, {2, 0}, {3}}
	var params []ddp.Parameter
	for i, v := range values {
		params = append(params, ddp.Param(string(rune('a'+i)), v, nil))
	}
	r, err := ddp.New(bg, world(), params, ddp.Options{})
	if err != nil {
		return err
	}
	if err := r.Verify(bg); err != nil {
		return fmt.Errorf("equal parameters: %w", err)
	}
	for i := range values {
		r.Ready(i)
		if err := equal("within a step", fmt.Sprint(r.Verify(bg)), "ddp: Verify: a step has begun by Ready: call Wait first"); err != nil {
			return err
		}
	}
	if err := r.Wait(bg); err != nil {
		return err
	}
	err = r.Join(bg, func() error {
		if _, ok := errors.AsType[*ccl.InvalidArgumentError](r.Verify(bg)); !ok {
			return errors.New("Verify within Join is not refused")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if rank == ranks-1 {
		values[1][1] = math.Copysign(0, -1) // equal, and not the same bits
		values[2][0]++
	}
	err = r.Verify(bg)
	if _, ok := errors.AsType[*ccl.MismatchError](err); !ok {
		return fmt.Errorf("the error is a %T: %w", err, err)
	}
	return err
}

// drift trains a parameter whose gradient is allocated anew in each step: the Reducer goes on with
// the old one.
func drift(rank, steps int) (r *ddp.Reducer, err error) {
	w, gw := []float64{0}, []float64{0}
	r, err = ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, gw)}, ddp.Options{})
	if err != nil {
		return nil, err
	}
	for range steps {
		gw = []float64{float64(rank)} // in place of gw[0] = rank
		r.Ready(0)
		if err := r.Wait(bg); err != nil {
			return r, err
		}
		w[0] -= gw[0]
	}
	return r, nil
}

// Save refuses parameters that differ between ranks, on all ranks, and leaves the older file as it
// is.
func TestSaveOfParametersThatDiffer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	require.NoError(t, os.WriteFile(path, []byte("older"), 0o600))
	for rank, err := range spawn(t, 3, func(rank int) error {
		r, err := drift(rank, 2)
		if err != nil {
			return err
		}
		return r.Save(bg, path, nil)
	}) {
		var refused *ddp.CheckpointError
		require.ErrorAs(t, err, &refused, "rank %d", rank)
		require.ErrorAs(t, err, new(*ccl.MismatchError))
		require.Regexp(t, `^ddp: checkpoint .*/c: ranks disagree on parameter 0: "w", CRC \w+ on rank 0; "w", CRC \w+ on rank 1; "w", CRC \w+ on rank 2; a rank has changed one alone, or `, err.Error())
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "older", string(text))
}

// With debug on any rank, each hundredth step compares the parameters; else none does.
func TestDebugComparesParameters(t *testing.T) {
	all(t, 2, func(rank int) error {
		_, err := drift(rank, 250)
		return err
	})
	t.Setenv("GOCCL_DEBUG", "true")
	for _, err := range spawn(t, 2, func(rank int) error {
		r, err := drift(rank, 99)
		if err != nil {
			return fmt.Errorf("before step 100: %w", err)
		}
		r.Ready(0)
		return r.Wait(bg)
	}) {
		require.ErrorContains(t, err, `ddp: ranks disagree on parameter 0: "w", CRC `)
	}
	all(t, 2, func(rank int) error { // in Join a rank that is done keeps its parameters
		w, gw := []float64{0}, []float64{0}
		r, err := ddp.New(bg, world(), []ddp.Parameter{ddp.Param("w", w, gw)}, ddp.Options{})
		if err != nil {
			return err
		}
		train := func(steps int) error {
			for range steps {
				gw[0] = float64(rank + 1)
				r.Ready(0)
				if err := r.Wait(bg); err != nil {
					return err
				}
				w[0] -= gw[0]
			}
			return nil
		}
		return errors.Join(train(98), r.Join(bg, func() error { return train(3 * rank) }), r.Verify(bg), train(99), equal("w", w[0], -98*1.5-3*2-99*1.5), r.Close())
	})
}

// A gradient that is allocated anew in each step is averaged if ReadyGrad gets it, and is Grad from
// then on.
func TestReadyGrad(t *testing.T) { everywhere(t, "ready grad", 1, succeeded) }

func readyGrad(rank, ranks int, _ *outcome) error {
	for _, views := range []bool{false, true} {
		for _, opts := range []ddp.Options{{}, {FindUnused: true}, {StaticGraph: true}, {Hooks: ddp.Hooks{Float32: ddp.BFloat16()}}} {
			if err := stepWithNewGradients(rank, ranks, views, opts); err != nil {
				return fmt.Errorf("views %v, options %+v: %w", views, opts, err)
			}
		}
	}
	return nil
}

func stepWithNewGradients(rank, ranks int, views bool, opts ddp.Options) error {
	lengths := []int{3, 70_000, 0, 1} // the second is reduced in place
	var params []ddp.Parameter
	for i, n := range lengths {
		var grad []float32
		if !views {
			grad = make([]float32, n)
		}
		params = append(params, ddp.Param(fmt.Sprint(i), make([]float32, n), grad))
	}
	r, err := ddp.New(bg, world(), params, opts)
	if err != nil {
		return err
	}
	made := make([][]float32, len(lengths))
	fresh := func(scale float32) {
		for i, n := range lengths {
			made[i] = make([]float32, n)
			for j := range made[i] {
				made[i][j] = scale * float32(rank+i)
			}
		}
	}
	check := func(what string, scale float32) error {
		for i := range lengths {
			if len(made[i]) > 0 && &made[i][0] != &ddp.Grad[float32](r, i)[0] {
				return fmt.Errorf("%s: Grad(%d) is another slice", what, i)
			}
			for _, x := range made[i] {
				if want := scale * (float32(ranks-1)/2 + float32(i)); x != want {
					return fmt.Errorf("%s: an element of gradient %d is %v, want %v", what, i, x, want)
				}
			}
		}
		return nil
	}
	for step := range 4 {
		fresh(2)
		for i := range made {
			switch {
			case step == 3:
				copy(ddp.Grad[float32](r, i), made[i])
				made[i] = ddp.Grad[float32](r, i)
				r.Ready(i) // the slice of the step before
			case i == 0 && step == 2: // given within NoSync, where the last counts
				if err := r.NoSync(func() error { ddp.ReadyGrad(r, i, make([]float32, 3)); ddp.ReadyGrad(r, i, made[i]); return r.Wait(bg) }); err != nil {
					return err
				}
			default:
				ddp.ReadyGrad(r, i, made[i])
			}
		}
		if err := r.Wait(bg); err != nil {
			return err
		}
		if err := check(fmt.Sprint("step ", step), 2); err != nil {
			return err
		}
	}
	if _, err := r.ClipGradNorm(0); err != nil {
		return err
	}
	return errors.Join(check("clipped", 0), r.Close())
}

// A gradient of another length, or one that is given twice, is a mistake in the step, and is not
// used.
func TestWrongReadyGrad(t *testing.T) {
	for _, err := range spawn(t, 2, func(int) error {
		r, _, err := three(ddp.Options{FindUnused: true}, false)
		if err != nil {
			return err
		}
		ddp.ReadyGrad(r, 1, make([]float64, 2))
		return r.Wait(bg)
	}) {
		require.EqualError(t, err, `ddp: Ready: parameter "b" has 1 elements, and the gradient that ReadyGrad got 2`)
	}
	all(t, 2, func(int) error {
		r, _, err := three(ddp.Options{FindUnused: true}, false)
		if err != nil {
			return err
		}
		first, second := []float64{1}, []float64{2}
		ddp.ReadyGrad(r, 1, first)
		ddp.ReadyGrad(r, 1, second)
		err = r.Wait(bg)
		return errors.Join(equal("twice", err.Error()[:40], `ddp: Ready: parameter "b" was ready twic`), equal("first", first[0], 1), equal("second", second[0], 2), r.Close())
	})
}

// Two parameters that are ready in a step with the same slice are a mistake, also where NoSync has
// accumulated them. Slices that change their parameters between steps are none.
func TestSharedReadyGrad(t *testing.T) {
	all(t, 2, func(int) error {
		r, _, err := three(ddp.Options{}, false)
		if err != nil {
			return err
		}
		slices := [][]float64{{1}, {2}, {3}}
		for step := range 3 {
			for i := range slices {
				ddp.ReadyGrad(r, i, slices[(i+step)%3])
			}
			if err := r.Wait(bg); err != nil {
				return err
			}
		}
		const want = `ddp: Ready: parameters "a" and "c" were ready with the same gradient: ReadyGrad takes a slice of each parameter's own`
		give := func() error { ddp.ReadyGrad(r, 0, slices[0]); ddp.ReadyGrad(r, 2, slices[0]); return nil }
		if err := errors.Join(r.NoSync(give), func() error { ddp.ReadyGrad(r, 1, slices[1]); return nil }()); err != nil {
			return err
		}
		accumulated := r.Wait(bg)
		ddp.ReadyGrad(r, 1, slices[1])
		err = errors.Join(equal("accumulated", fmt.Sprint(accumulated), want), give())
		return errors.Join(err, equal("in a step", fmt.Sprint(r.Wait(bg)), want), r.Close())
	})
}
