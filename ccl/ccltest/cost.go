package ccltest

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

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
			if err != nil {
				return fmt.Errorf("%v: %w", j, err)
			}
			if err := m.compare(); err != nil {
				return fmt.Errorf("%v: %w%s", j, err, s.costTable(w, j))
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

// total returns what the call took on all ranks together.
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

// costTable shows for 2 to 8 ranks what a call takes and what Cost declares, so that
// a formula shows: of a call whose length all of them divide, or else of calls like
// the one that failed.
func (s *subject) costTable(w world, failed *job) string {
	for _, like := range []*job{{coll: s.coll, dtype: ccl.Float32, count: 840, counts: []int{840}}, failed} {
		table, differs := "", false
		for n := 2; n <= 8; n++ {
			row, wrong, err := s.costRow(w, n, like)
			if err != nil {
				continue // it is not for so many ranks, or fails
			}
			table, differs = table+row, differs || wrong
		}
		if differs {
			return fmt.Sprintf("\n%v:\n  Ranks    Bytes    Total    steps  declared    bytes  declared%s", like, table)
		}
	}
	return ""
}

// costRow makes a call like another on n ranks.
func (s *subject) costRow(w world, n int, like *job) (row string, wrong bool, err error) {
	m := newMeter(s, n)
	err = s.with(w, n, probe{observe: m.see}, func(g *group) error {
		j := &job{coll: like.coll, dtype: like.dtype, op: like.op, count: like.count, root: min(like.root, n-1)}
		if s.coll == ccl.CollAllGather {
			for r := range n {
				j.counts = append(j.counts, like.counts[r%len(like.counts)])
			}
		}
		if _, err := g.supported([]*job{j}); err != nil {
			return err
		}
		shape, d := j.shape(g), &m.declared[0]
		err := g.each(func(r *rank) error { return r.attempt(j).call(context.Background()) })
		row = fmt.Sprintf("\n  %5d %8d %8d %8d %9d %8d %9d", n, shape.Bytes, shape.Total, m.total().Steps, d.Steps, m.total().Bytes, d.Bytes)
		return err
	})
	return row, m.compare() != nil, err
}
