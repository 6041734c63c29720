package ddp_test

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// shrink removes parts of a plan that fails on goroutines, while it fails.
func shrink(p *Plan) *Plan {
	for {
		plans := smaller(p)
		next := slices.IndexFunc(plans, failsOften)
		if next < 0 {
			return p
		}
		p = plans[next]
	}
}

// failsOften reports whether a plan fails in a few tries.
func failsOften(p *Plan) bool {
	for range 3 {
		if runOnGoroutines(p) != nil {
			return true
		}
	}
	return false
}

// A shrinking collects plans that have a part less than one plan.
type shrinking struct {
	plan *Plan
	all  []*Plan
}

// try adds the plan with a change.
func (s *shrinking) try(change func(q *Plan)) {
	var text bytes.Buffer
	q := new(Plan)
	if err := gob.NewEncoder(&text).Encode(s.plan); err != nil {
		panic(err)
	}
	if err := gob.NewDecoder(&text).Decode(q); err != nil {
		panic(err)
	}
	change(q)
	s.all = append(s.all, q)
}

// smaller returns plans that have a part less.
func smaller(p *Plan) []*Plan {
	s := &shrinking{plan: p}
	for i, t := range p.Trainings {
		if len(p.Trainings) > 1 {
			s.try(func(q *Plan) { q.Trainings = slices.Delete(q.Trainings, i, i+1) })
		}
		for j, ph := range t.Phases {
			if len(t.Phases) > 1 && (j > 0 || !t.Static) {
				s.try(func(q *Plan) { q.Trainings[i].Phases = slices.Delete(q.Trainings[i].Phases, j, j+1) })
			}
			for k, step := range ph.Steps {
				isTail := k > 0 && ph.Steps[k-1].Fault != nil
				if len(ph.Steps) > 1 && step.Fault == nil && !isTail && (j+k > 0 || !t.Static) {
					s.try(func(q *Plan) { removeStep(q.Trainings[i].Phases[j], k) })
				}
				s.turns(step, func(q *Plan) *Step { return q.Trainings[i].Phases[j].Steps[k] })
			}
		}
		for _, option := range []func(t *Training) *bool{
			func(t *Training) *bool { return &t.Shares },
			func(t *Training) *bool { return &t.Views },
		} {
			if *option(t) {
				s.try(func(q *Plan) { *option(q.Trainings[i]) = false })
			}
		}
		for j, d := range t.Types {
			if d != ccl.Float32 {
				s.try(func(q *Plan) { q.Trainings[i].Types[j] = ccl.Float32 })
			}
		}
	}
	return s.all
}

// turns adds plans with a mistake, or a batch within NoSync, less in a step; in finds it.
func (s *shrinking) turns(step *Step, in func(q *Plan) *Step) {
	for rank, turn := range step.Turns {
		if turn.Slip != "" && turn.Slip != SlipOutside {
			s.try(func(q *Plan) { in(q).Turns[rank].Slip = "" })
		}
		for b, ready := range turn.NoSync {
			if len(ready) == 0 {
				s.try(func(q *Plan) { t := &in(q).Turns[rank]; t.NoSync = slices.Delete(t.NoSync, b, b+1) })
			}
			for n, parameter := range ready {
				if slices.Contains(turn.Last, parameter) {
					s.try(func(q *Plan) { t := in(q).Turns[rank]; t.NoSync[b] = slices.Delete(t.NoSync[b], n, n+1) })
				}
			}
		}
	}
}

func removeStep(ph *Phase, k int) {
	ph.Steps = slices.Delete(ph.Steps, k, k+1)
	for rank := range ph.Counts {
		if ph.Counts[rank] > k {
			ph.Counts[rank]--
		}
	}
}

// describe lists a plan, one turn a line.
func describe(p *Plan) string {
	var b strings.Builder
	for _, t := range p.Trainings {
		phases := t.Phases
		t.Phases = nil
		fmt.Fprintf(&b, "training %+v\n", *t)
		t.Phases = phases
		for _, ph := range phases {
			fmt.Fprintf(&b, "  phase: join %v, steps %d\n", ph.Join, ph.Counts)
			for _, s := range ph.Steps {
				fmt.Fprintf(&b, "    step %d", s.Number)
				if s.Fault != nil {
					fmt.Fprintf(&b, ", fault %+v", *s.Fault)
				}
				for rank, turn := range s.Turns {
					fmt.Fprintf(&b, "\n      rank %d: NoSync %d, then %d %s", rank, turn.NoSync, turn.Last, turn.Slip)
				}
				b.WriteString("\n")
			}
		}
	}
	return b.String()
}
