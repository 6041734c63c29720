package ccltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// supports makes calls that the kernel supports, and others.
func supports(s *subject, w world, n int) error {
	return s.with(w, n, probe{}, func(g *group) error {
		jobs := every(2, g.jobs())
		if s.coll == ccl.CollAllReduce {
			jobs = append(jobs, &job{coll: s.coll, dtype: ccl.Int32, op: ccl.BAnd, count: 5})
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

// admission makes a call, and after one that has to be refused a barrier.
func (r *rank) admission(j *job) error {
	_, cannot := r.g.settings.Choose(j.shape(r.g), "")
	a := r.attempt(j)
	err := a.call(context.Background())
	if cannot == nil && j.op != ccl.BAnd {
		if err != nil {
			return fmt.Errorf("its Supports says that it can do this, but it cannot: %w", err)
		}
		return nil
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
	m := newMeter(s, n)
	return s.with(w, n, probe{observe: m.see}, func(g *group) error {
		jobs, err := g.supported(append(g.jobs(), g.longJobs()...))
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if j.shape(g).Total == 0 {
				continue // nothing moves, and no kernel runs
			}
			err := g.each(func(r *rank) error { return r.attempt(j).call(context.Background()) })
			if err == nil {
				err = m.compare()
			}
			if err != nil {
				return fmt.Errorf("%v: %w", j, err)
			}
		}
		return nil
	})
}

// meter sees what a call takes on each rank, and what each takes it to cost.
type meter struct {
	kernel         *ccl.Kernel
	took, declared []ccl.Cost
}

func newMeter(s *subject, ranks int) *meter {
	return &meter{s.kernel(), make([]ccl.Cost, ranks), make([]ccl.Cost, ranks)}
}

func (m *meter) see(c *ccl.Call) {
	m.took[c.Rank()] = c.Traffic()
	m.declared[c.Rank()] = m.kernel.Cost(c.Shape())
}

func (m *meter) compare() error {
	var total ccl.Cost
	for _, took := range m.took {
		total.Steps = max(total.Steps, took.Steps)
		total.Bytes += took.Bytes
	}
	for _, d := range m.declared {
		if d != total {
			return fmt.Errorf("it took %d steps and %d bytes; its Cost declares %d and %d", total.Steps, total.Bytes, d.Steps, d.Bytes)
		}
	}
	return nil
}
