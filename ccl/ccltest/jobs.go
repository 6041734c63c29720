package ccltest

import (
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
)

// newCall returns a call of about count elements; k selects everything else.
func (g *group) newCall(d ccl.DType, op ccl.Op, count, k int) *calls.Call {
	return calls.New(g.s.coll, len(g.ranks), d, op, count, k)
}

// sizes returns lengths around the number of ranks, and a longer one.
func (g *group) sizes() (short []int, longer int) {
	n := len(g.ranks)
	longer = 1000
	if g.medium.scarce {
		longer = 150
	}
	return distinct(1, n-1, n, n+1, 7*n+3), longer
}

// distinct returns the counts above zero, each once, sorted.
func distinct(counts ...int) []int {
	slices.Sort(counts)
	counts = slices.Compact(counts)
	return slices.DeleteFunc(counts, func(n int) bool { return n < 1 })
}

// edges returns calls around the lengths of inputs, from least to most bytes, at which some
// part switches paths. Each is tried with two types.
func (g *group) edges(least, most int) []*calls.Call {
	n, spread := len(g.ranks), g.spread()
	var jobs []*calls.Call
	for i, at := range g.switches {
		if at < least || at*spread > most {
			continue
		}

		for k := range 6 {
			t := calls.Kinds[(i*3+k+n)%len(calls.Kinds)]
			if count := at/t.DType.Size() + k%3 - 1; count > 0 {
				ops := t.OpsFor(g.s.coll)
				jobs = append(jobs, g.newCall(t.DType, ops[(i+k)%len(ops)], count*spread, len(jobs)))
			}
		}
	}
	return jobs
}

// brief returns the length in bytes up to which calls are cheap.
func (w medium) brief() int {
	if w.scarce {
		return 1 << 10
	}
	return 20 << 10
}

// long is more than the engine reduces between two checks for a failed group.
const long = 600 << 10

// jobs returns brief calls of all kinds.
func (g *group) jobs() []*calls.Call {
	var jobs []*calls.Call
	if g.s.coll.Traits().Reduces {
		jobs = g.reductions()
	} else {
		jobs = g.moves()
	}
	return append(jobs, g.edges(0, g.medium.brief())...)
}

// reductions pairs all types with all their operations, each at a short size that depends
// on the number of ranks, and samples pairs at the longer size.
func (g *group) reductions() []*calls.Call {
	var jobs []*calls.Call
	add := func(t *calls.Kind, op ccl.Op, count int, of calls.Numbers) {
		j := g.newCall(t.DType, op, count, len(jobs))
		j.Numbers = of
		jobs = append(jobs, j)
	}

	short, longer := g.sizes()
	for i := range calls.Kinds {
		t := &calls.Kinds[i]
		ops := t.OpsFor(g.s.coll)
		for k, op := range ops {
			add(t, op, short[(i+k)*(1+len(g.ranks)%3)%len(short)], calls.Exact)
		}
		add(t, ops[(i+len(g.ranks))%len(ops)], longer, calls.Exact)
		if !t.IsFloat {
			continue
		}

		for _, op := range ops {
			switch op {
			case ccl.Min, ccl.Max:
				add(t, op, 61, calls.Odd)
			default:
				add(t, op, 7, calls.Rough)
				add(t, op, 97, calls.Rough)
			}

			if op == ccl.Avg && t.DType == ccl.Float16 {
				add(t, op, 5, calls.Large)
				add(t, op, longer, calls.Large)
			}
		}
	}
	return jobs
}

// moves combines all types, roots and sizes, including no elements.
func (g *group) moves() []*calls.Call {
	var jobs []*calls.Call
	short, longer := g.sizes()
	sizes := append(short, longer, 0)
	n := len(g.ranks)
	for i := range max(2*n, 48) {
		round, root := i/n, i%n
		t, count := calls.Kinds[(round+root)%len(calls.Kinds)], sizes[(round+2*root)%len(sizes)]
		jobs = append(jobs, g.newCall(t.DType, ccl.Sum, count, i))
	}
	return jobs
}

// longJobs returns one or two long calls, and those just longer than what the algorithm declares.
// They are slow, and two ranks suffice.
func (g *group) longJobs() []*calls.Call {
	if len(g.ranks) != 2 || g.medium.scarce || g.s.short {
		return nil
	}
	t := calls.Kinds[(int(g.s.coll)+len(g.medium.name))%len(calls.Kinds)]
	ops := t.OpsFor(g.s.coll)
	k := int(g.s.coll) / 2
	jobs := []*calls.Call{g.newCall(t.DType, ops[k%len(ops)], long/t.DType.Size(), k)}
	jobs = append(jobs, g.pick(1, g.edges(g.medium.brief()+1, long))...)

	for _, p := range g.s.declared(2, g.settings) {
		for _, at := range []int{p.bytes, 2 * p.bytes} {
			if reach := g.s.reach(); p.bytes <= reach && at > g.medium.brief() {
				jobs = append(jobs, g.newCall(t.DType, ops[(k+len(jobs))%len(ops)], g.spread()*(at/t.DType.Size()+1), k))
			}
		}
	}
	return jobs
}

// spread is by how much the vector of all blocks together is longer than one input.
func (g *group) spread() int {
	if g.s.coll.Traits().Input == ccl.RankBlock {
		return len(g.ranks)
	}
	return 1
}

// pick returns the first job and about most of the others, fewer with -short and -race. The
// selection depends on the number of ranks and the medium, so that the cases of a check together
// include all jobs.
func (g *group) pick(most int, jobs []*calls.Call) []*calls.Call {
	return g.sampleOf(g.thinned(most/2, most), jobs)
}

// thinned returns short with -short and -race, and otherwise all. On more than few ranks, where
// calls take much longer, short shrinks as their number grows.
func (g *group) thinned(short, all int) int {
	if !g.s.short {
		return all
	}
	return short * fewRanks / max(len(g.ranks), fewRanks)
}

// fewRanks is the size of the largest group that thinned does not thin further.
const fewRanks = 4

func (g *group) sampleOf(most int, jobs []*calls.Call) []*calls.Call {
	var taken []*calls.Call
	seed := calls.Mix(uint64(len(g.ranks)<<8 + len(g.medium.name)))
	for i, j := range jobs {
		if i == 0 || calls.Mix(seed+uint64(i))%uint64(len(jobs)) < uint64(most) {
			taken = append(taken, j)
		}
	}
	return taken
}
