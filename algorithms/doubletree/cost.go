package doubletree

import (
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// costOf returns the cost of a kernel of these phases. Each sends the vector over every edge once.
func costOf(phases ...func(*play)) func(ccl.Shape) ccl.Cost {
	return func(s ccl.Shape) ccl.Cost {
		p := &play{topology.NewTwoTrees(s.Ranks, 0), chunks(s), make([]int, s.Ranks)}
		for _, phase := range phases {
			phase(p)
		}
		return ccl.Cost{Steps: slices.Max(p.clocks), Bytes: len(phases) * (s.Ranks - 1) * s.Bytes}
	}
}

// play simulates the steps with a clock for each rank, the length of the longest chain of
// messages that ends there. The chain is shorter than the number of steps where ranks
// wait, and no formula for it is shorter than the simulation.
type play struct {
	two    topology.TwoTrees // the same from any root
	n      int               // chunks of each half
	clocks []int
}

func (p *play) down() {
	p.run(func(parent, child, step int) (from, to, first int) { return parent, child, step })
}

func (p *play) up() {
	p.run(func(parent, child, step int) (from, to, first int) { return child, parent, p.two.Span() - step })
}

// run sends all chunks over all edges. way returns the direction of an edge and the step
// in which the first chunk crosses it.
func (p *play) run(way func(parent, child, step int) (from, to, first int)) {
	for t := range p.two.Span() + 2*p.n {
		before := slices.Clone(p.clocks)

		for tree := range 2 {
			for child := 1; child < len(p.clocks); child++ {
				parent, _ := p.two.Parent(tree, child)
				from, to, first := way(parent, child, p.two.Step(tree, child))
				if i := t - first; i >= 0 && i%2 == 0 && i/2 < p.n {
					p.clocks[from] = max(p.clocks[from], before[from]+1)
					p.clocks[to] = max(p.clocks[to], before[from]+1)
				}
			}
		}
	}
}
