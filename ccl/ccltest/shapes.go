package ccltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// supports makes calls that the kernel does not support, and then a barrier.
func supports(s *subject, w world, n int) error {
	if s.coll != ccl.CollAllReduce && s.kernel().Supports == nil {
		return &skipped{"the kernel supports all shapes, and takes no operation"}
	}
	return s.with(w, n, probe{}, func(g *group) error {
		jobs := g.jobs()
		if s.coll == ccl.CollAllReduce {
			jobs = append(jobs, &job{coll: s.coll, dtype: ccl.Int32, op: ccl.BAnd, count: 5})
		}
		return g.each(func(r *rank) error {
			for _, j := range jobs {
				if j.op != ccl.BAnd && s.kernel().Supports == nil {
					continue
				}
				if err := r.refusal(j); err != nil {
					return fmt.Errorf("%v: %w", j, err)
				}
			}
			return nil
		})
	})
}

func (r *rank) refusal(j *job) error {
	_, cannot := r.comm.Settings().Choose(j.shape(r.g), "")
	a := r.attempt(j)
	err := a.call(context.Background())
	if cannot == nil && j.op != ccl.BAnd {
		return err
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

// costs makes calls one by one, and adds up what they took.
func costs(s *subject, w world, n int) error {
	took := make([]ccl.Cost, n)
	declared := make([]ccl.Cost, n)
	see := func(c *ccl.Call) {
		took[c.Rank()] = c.Traffic()
		declared[c.Rank()] = s.kernel().Cost(c.Shape())
	}
	return s.with(w, n, probe{observe: see}, func(g *group) error {
		jobs, err := g.supported(append(g.jobs(), g.longJobs()...))
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if j.shape(g).Total == 0 {
				continue // nothing moves, and no kernel runs
			}
			err := g.each(func(r *rank) error { return r.attempt(j).call(context.Background()) })
			if err != nil {
				return fmt.Errorf("%v: %w", j, err)
			}
			var total ccl.Cost
			for r := range took {
				total.Steps = max(total.Steps, took[r].Steps)
				total.Bytes += took[r].Bytes
			}
			for _, d := range declared {
				if d != total {
					return fmt.Errorf("%v took %d steps and %d bytes; its Cost declares %d and %d",
						j, total.Steps, total.Bytes, d.Steps, d.Bytes)
				}
			}
		}
		return nil
	})
}
