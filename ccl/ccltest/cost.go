package ccltest

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
)

// costs compares the cost of single calls with the declared one. Cost is declared for blocks
// of equal length, and for scans through a view only where ranks share memory: see ccl.Shape
// and ccl.Kernel.
func costs(s *subject, w medium, n int) error {
	if !s.declares(w) {
		return &skipped{why: "Cost does not cover scans through a view of copies, where every rank scans for itself", rest: true}
	}

	m := newMeter(s, n)
	return s.with(w, n, probe{observe: m.see}, func(g *group) error {
		jobs := g.pick(60, g.jobs())
		if w.name == park.name {
			jobs = append(jobs, g.longJobs()...)
		}
		jobs, err := g.supported(jobs)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if g.shapeOf(j).Total == 0 || !j.EqualBlocks() {
				continue // nothing moves, and no kernel runs
			}
			err := g.each(func(r *rank) error { return r.attempt(j).call(context.Background()) })
			if err != nil {
				return fmt.Errorf("%v: %w", j, err)
			}
			if err := m.compare(); err != nil {
				return g.charted(fmt.Errorf("%v: %w%s", j, err, s.costTable(w, j)))
			}
		}
		return nil
	})
}

// declares reports whether the kernel's Cost covers w: for a scan through a view it covers
// only ranks that share memory.
func (s *subject) declares(w medium) bool {
	return !(s.coll.Traits().Scans && s.kernel().AnyRunner && w.copies)
}

// meter records the cost of a call on each rank, and the cost declared there.
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

// total returns the cost on all ranks together.
func (m *meter) total() ccl.Cost {
	var total ccl.Cost
	for _, took := range m.took {
		total.Steps = max(total.Steps, took.Steps)
		total.Bytes += took.Bytes
	}
	return total
}

func (m *meter) compare() error {
	total := m.total()
	for _, d := range m.declared {
		if d != total {
			return fmt.Errorf("it took %d steps and %d bytes; its Cost declares %d and %d", total.Steps, total.Bytes, d.Steps, d.Bytes)
		}
	}
	return nil
}

// costTable lists the actual and the declared cost for 2 to 8 ranks, so that the right
// formula can be seen: of a call whose length is divisible by all of them, or else of calls
// like the one that failed.
func (s *subject) costTable(w medium, failed *calls.Call) string {
	plain := &calls.Call{Coll: s.coll, DType: ccl.Float32, Op: ccl.Sum, Count: 840}
	for _, like := range []*calls.Call{plain, failed} {
		table, differs := "", false
		for n := 2; n <= 8; n++ {
			row, isOff, err := s.costRow(w, n, like)
			if err != nil {
				continue // not supported on n ranks, or fails
			}
			table, differs = table+row, differs || isOff
		}
		if differs {
			return fmt.Sprintf("\n%v:\n  Ranks    Bytes    Total    steps  declared    bytes  declared%s", like, table)
		}
	}
	return ""
}

// costRow makes a call like another on n ranks.
func (s *subject) costRow(w medium, n int, like *calls.Call) (row string, isOff bool, err error) {
	m := newMeter(s, n)
	err = s.with(w, n, probe{observe: m.see}, func(g *group) error {
		j := like.On(n)
		if _, err := g.supported([]*calls.Call{j}); err != nil {
			return err
		}
		shape, d := g.shapeOf(j), &m.declared[0]
		err := g.each(func(r *rank) error { return r.attempt(j).call(context.Background()) })
		row = fmt.Sprintf("\n  %5d %8d %8d %8d %9d %8d %9d", n, shape.Bytes, shape.Total, m.total().Steps, d.Steps, m.total().Bytes, d.Bytes)
		return err
	})
	return row, m.compare() != nil, err
}
