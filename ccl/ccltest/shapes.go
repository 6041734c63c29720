package ccltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
)

// supports mixes calls that the kernel does not support with others.
func supports(s *subject, w medium, n int) error {
	if err := s.calls(w, n); blame(err) == "Supports" {
		return s.supposed(err)
	}
	return s.with(w, n, probe{}, func(g *group) error {
		jobs := g.pick(40, g.jobs())
		if s.coll.Traits().Reduces {
			odd := g.newCall(ccl.Float32, ccl.BAnd, 5, 0) // floats have no bits
			jobs = append(jobs, odd)
		}
		return g.each(func(r *rank) error {
			for _, j := range jobs {
				if err := r.admission(j); err != nil {
					return fmt.Errorf("%v: %w", j, err)
				}
			}
			return nil
		})
	})
}

// admission makes a call and, if it must be refused, a barrier after it.
func (r *rank) admission(j *calls.Call) error {
	_, cannot := r.g.settings.Choose(r.g.shapeOf(j), "")
	a := r.attempt(j)
	err := a.call(context.Background())
	if cannot == nil && !(j.Coll.Traits().Reduces && j.Op.Check(j.Coll, j.DType) != nil) {
		return r.g.s.supposed(err)
	}
	if !errors.Is(err, ccl.ErrNotImplemented) {
		return fmt.Errorf("it is not supported; the call returned %v instead of ErrNotImplemented", err)
	}

	a.Spoil()
	if err := r.comm.Barrier(context.Background()); err != nil {
		return fmt.Errorf("a barrier after the refused call: %w", err)
	}
	return a.Untouched()
}
