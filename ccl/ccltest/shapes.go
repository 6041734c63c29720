package ccltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// supports mixes calls that the kernel does not support with others.
func supports(s *subject, w world, n int) error {
	if err := s.calls(w, n); blame(err) == "Supports" {
		return s.supposed(err)
	}
	return s.with(w, n, probe{}, func(g *group) error {
		jobs := g.some(40, g.jobs())
		if s.coll.Reduces() {
			odd := g.call(ccl.Float32, ccl.BAnd, 5, 0) // floats have no bits
			odd.refused = true
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
func (r *rank) admission(j *job) error {
	_, cannot := r.g.settings.Choose(j.shape(r.g), "")
	a := r.attempt(j)
	err := a.call(context.Background())
	if cannot == nil && !j.refused {
		return r.g.s.supposed(err)
	}
	if !errors.Is(err, ccl.ErrNotImplemented) {
		return fmt.Errorf("it is not supported; the call returned %v instead of ErrNotImplemented", err)
	}
	a.spoil()
	if err := r.comm.Barrier(context.Background()); err != nil {
		return fmt.Errorf("a barrier after the refused call: %w", err)
	}
	return a.untouched()
}
