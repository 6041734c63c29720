package ddp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
)

// modes are the options that say which parameters may be not ready.
func modes() []ddp.Options {
	return []ddp.Options{{}, {FindUnused: true}, {StaticGraph: true}}
}

// What was ready within NoSync counts as ready in the next step, in every mode and step, also if the step itself leaves it
// out, and however often it was ready.
func TestNoSyncCounts(t *testing.T) { everywhere(t, "accumulated", 1, succeeded) }

func accumulate(rank, ranks int, _ *outcome) error {
	mean := float64(ranks-1) / 2
	for _, views := range []bool{false, true} {
		for _, opts := range modes() {
			r, g, err := three(opts, views)
			if err != nil {
				return err
			}
			for step := range 4 {
				g[0][0], g[1][0], g[2][0] = 0, 0, 0
				err := r.NoSync(func() error {
					for range 2 {
						g[0][0] += float64(rank + step)
						r.Ready(0)
					}
					g[1][0] += float64(rank)
					r.Ready(1)
					return r.Wait(bg)
				})
				if err != nil {
					return err
				}
				g[1][0] += float64(rank)
				r.Ready(1)
				g[2][0] = float64(rank)
				r.Ready(2)
				if err := r.Wait(bg); err != nil {
					return fmt.Errorf("views %v, static %v, step %d: %w", views, opts.StaticGraph, step, err)
				}
				if err := errors.Join(equal("a", g[0][0], 2*(mean+float64(step))), equal("b", g[1][0], 2*mean), equal("c", g[2][0], mean)); err != nil {
					return err
				}
			}
			if err := r.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// A parameter that is ready within NoSync and was not in the first step of a static graph is an error of the next Wait, on
// the ranks that made the mistake. The group lives on, and the next step is right.
func TestNoSyncOutsideStaticGraph(t *testing.T) { everywhere(t, "outside", 1, succeeded) }

func accumulateOutside(rank, ranks int, _ *outcome) error {
	for _, views := range []bool{false, true} {
		r, g, err := three(ddp.Options{StaticGraph: true}, views)
		if err != nil {
			return err
		}
		for step := range 3 {
			mistaken := step == 1 && rank == ranks-1
			if mistaken {
				if err := r.NoSync(func() error { r.Ready(0); return nil }); err != nil {
					return err
				}
			}
			g[1][0], g[2][0] = float64(rank), 2
			r.Ready(2)
			r.Ready(1)
			err := r.Wait(bg)
			var e *ccl.InvalidArgumentError
			const text = `parameter "a" was ready, and was not in the first step: set FindUnused in place of StaticGraph if steps differ`
			if errors.As(err, &e) != mistaken || !mistaken && err != nil || mistaken && e.Message != text {
				return fmt.Errorf("views %v, step %d: %w", views, step, err)
			}
			if err := errors.Join(equal("b", g[1][0], float64(ranks-1)/2), equal("c", g[2][0], 2)); err != nil {
				return err
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

// NoSync and ClipGradNorm are refused in a step that has begun, whose gradients they would write, and the step is completed.
func TestNoSyncWithinStep(t *testing.T) {
	for _, views := range []bool{false, true} {
		all(t, 2, func(rank int) error {
			r, g, err := three(ddp.Options{}, views)
			if err != nil {
				return err
			}
			for i := range g {
				g[i][0] = float64(rank)
			}
			r.Ready(2)
			called := false
			refused := r.NoSync(func() error { called = true; return nil })
			_, clipped := r.ClipGradNorm(0)
			for _, err := range []error{refused, clipped} {
				var e *ccl.InvalidArgumentError
				if !errors.As(err, &e) || e.Message != "a step has begun by Ready: call Wait first" {
					return fmt.Errorf("got %w", err)
				}
			}
			r.Ready(1)
			r.Ready(0)
			err = r.Wait(bg)
			return errors.Join(err, equal("called", called, false), equal("a", g[0][0], 0.5), equal("c", g[2][0], 0.5), r.Close())
		})
	}
}

// ClipGradNorm is refused while gradients are those of this rank alone, within NoSync and until the
// step that reduces them: the ranks would scale them by factors of their own.
func TestClipOfAccumulatedGradients(t *testing.T) {
	all(t, 2, func(rank int) error {
		r, g, err := three(ddp.Options{}, false)
		if err != nil {
			return err
		}
		clip := func() error {
			_, err := r.ClipGradNorm(1e-3)
			if e, ok := errors.AsType[*ccl.InvalidArgumentError](err); !ok || !strings.Contains(e.Message, "call Wait outside NoSync first") {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}
		err = r.NoSync(func() error {
			g[0][0] = float64(rank)
			r.Ready(0)
			return errors.Join(r.Wait(bg), clip())
		})
		if err := errors.Join(err, clip()); err != nil {
			return err
		}
		r.Ready(1)
		r.Ready(2)
		if err := r.Wait(bg); err != nil {
			return err
		}
		norm, err := r.ClipGradNorm(1)
		return errors.Join(err, equal("norm", norm, 0.5), equal("a", g[0][0], 0.5), r.Close())
	})
}
