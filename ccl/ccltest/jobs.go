package ccltest

import (
	"slices"

	"github.com/goccl/goccl/ccl"
)

// call returns a call of about count elements: in a vector, or in all blocks of one input
// together. k selects everything else; in groups of n ranks k and k+n have the same root.
func (g *group) call(d ccl.DType, op ccl.Op, count, k int) *job {
	n, h := len(g.ranks), mix(uint64(k))
	j := &job{coll: g.s.coll, ranks: n, dtype: d, count: count, root: k % n, vform: h>>16%4 == 0}
	if g.s.coll.Reduces() {
		j.op = op
	}
	style, who := int(h%4), int(h>>8%uint64(n))
	switch g.s.coll {
	case ccl.CollAllGather, ccl.CollGather, ccl.CollReduceScatter, ccl.CollScatter:
		j.counts = deal(count, n, style, who)
	case ccl.CollAllToAll:
		for from := range n {
			j.matrix = append(j.matrix, deal(count, n, style, who))
			if style > 0 { // no two rows are equal
				style, who = 1+style%3, (who+from)%n
			}
		}
	}
	return j
}

// deal divides about count elements among n ranks: evenly in style 0, otherwise not.
func deal(count, n, style, who int) []int {
	counts := make([]int, n)
	for r := range counts {
		lo, hi := ccl.BlockRange(count, r, n)
		switch style {
		case 0:
			counts[r] = max(count/n, min(count, 1))
		case 1:
			counts[r] = hi - lo
		case 2: // all to one rank
			counts[who] = count
		case 3: // from almost none to twice the average
			counts[(who+r)%n] = (hi-lo)*2*r/n + (r+who)%2
		}
	}
	if style == 3 && total(counts) == 0 {
		counts[who] = count
	}
	return counts
}

// sizes returns lengths around the number of ranks, and a longer one.
func (g *group) sizes() (short []int, longer int) {
	n := len(g.ranks)
	longer = 1000
	if g.world.scarce {
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
func (g *group) edges(least, most int) []*job {
	n, spread := len(g.ranks), 1
	if g.s.coll == ccl.CollAllGather || g.s.coll == ccl.CollGather {
		spread = n // all inputs together are n times as long
	}
	var jobs []*job
	for i, at := range g.switches {
		if at < least || at*spread > most {
			continue
		}
		for k := range 6 {
			t := kinds[(i*3+k+n)%len(kinds)]
			if count := at/t.dtype.Size() + k%3 - 1; count > 0 {
				ops := g.ops(&t)
				jobs = append(jobs, g.call(t.dtype, ops[(i+k)%len(ops)], count*spread, len(jobs)))
			}
		}
	}
	return jobs
}

// ops returns the collective's operations on a type: a scan has no Avg.
func (g *group) ops(t *kind) []ccl.Op {
	if g.s.coll != ccl.CollScan && g.s.coll != ccl.CollExScan {
		return t.ops
	}
	return slices.DeleteFunc(slices.Clone(t.ops), func(op ccl.Op) bool { return op == ccl.Avg })
}

// brief returns the length in bytes up to which calls are cheap.
func (w world) brief() int {
	if w.scarce {
		return 1 << 10
	}
	return 20 << 10
}

// long is more than the engine reduces between two checks for a failed group.
const long = 600 << 10

// jobs returns brief calls of all kinds.
func (g *group) jobs() []*job {
	var jobs []*job
	if g.s.coll.Reduces() {
		jobs = g.reductions()
	} else {
		jobs = g.moves()
	}
	return append(jobs, g.edges(0, g.world.brief())...)
}

// reductions pairs all types with all their operations, each at a short size that depends
// on the number of ranks, and samples pairs at the longer size.
func (g *group) reductions() []*job {
	var jobs []*job
	add := func(t *kind, op ccl.Op, count int, of numbers) {
		j := g.call(t.dtype, op, count, len(jobs))
		j.numbers = of
		jobs = append(jobs, j)
	}
	short, longer := g.sizes()
	for i := range kinds {
		t := &kinds[i]
		ops := g.ops(t)
		for k, op := range ops {
			add(t, op, short[(i+k)*(1+len(g.ranks)%3)%len(short)], exact)
		}
		add(t, ops[(i+len(g.ranks))%len(ops)], longer, exact)
		if !t.float {
			continue
		}
		for _, op := range ops {
			switch op {
			case ccl.Min, ccl.Max:
				add(t, op, 61, odd)
			default:
				add(t, op, 7, rough)
				add(t, op, 97, rough)
			}
			if op == ccl.Avg && t.dtype == ccl.Float16 {
				add(t, op, 5, large)
				add(t, op, longer, large)
			}
		}
	}
	return jobs
}

// moves combines all types, roots and sizes, including no elements.
func (g *group) moves() []*job {
	var jobs []*job
	short, longer := g.sizes()
	sizes := append(short, longer, 0)
	n := len(g.ranks)
	for i := range max(2*n, 48) {
		round, root := i/n, i%n
		t, count := kinds[(round+root)%len(kinds)], sizes[(round+2*root)%len(sizes)]
		jobs = append(jobs, g.call(t.dtype, ccl.Sum, count, i))
	}
	return jobs
}

// longJobs returns one or two long calls. They are slow, and two ranks suffice.
func (g *group) longJobs() []*job {
	if len(g.ranks) != 2 || g.world.scarce || g.s.short {
		return nil
	}
	t := kinds[(int(g.s.coll)+len(g.world.name))%len(kinds)]
	ops := g.ops(&t)
	k := int(g.s.coll) / 2
	jobs := []*job{g.call(t.dtype, ops[k%len(ops)], long/t.dtype.Size(), k)}
	return append(jobs, g.some(1, g.edges(g.world.brief()+1, long))...)
}

// some returns the first job and about most of the others, fewer with -short and -race. The
// selection depends on the number of ranks and the world, so that the cases of a check together
// include all jobs.
func (g *group) some(most int, jobs []*job) []*job {
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

func (g *group) sampleOf(most int, jobs []*job) []*job {
	var taken []*job
	seed := mix(uint64(len(g.ranks)<<8 + len(g.world.name)))
	for i, j := range jobs {
		if i == 0 || mix(seed+uint64(i))%uint64(len(jobs)) < uint64(most) {
			taken = append(taken, j)
		}
	}
	return taken
}
