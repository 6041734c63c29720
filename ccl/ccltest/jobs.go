package ccltest

import (
	"slices"

	"github.com/goccl/goccl/ccl"
)

// dtypes in an order in which neighbours differ much.
var dtypes = []ccl.DType{ccl.Float32, ccl.Int64, ccl.Uint8, ccl.Float64, ccl.Int32}

// sizes returns vector lengths: around the number of ranks, and a longer one.
func (g *group) sizes() []int {
	n, longer := len(g.ranks), 1000
	if g.world.scarce {
		longer = 150
	}
	return distinct(1, n-1, n, n+1, longer)
}

// edges returns vector lengths around those at which something switches, if these
// are from least to most bytes.
func (g *group) edges(d ccl.DType, least, most int) []int {
	var counts []int
	for _, at := range g.switches {
		if least <= at && at <= most {
			n := at / d.Size()
			counts = append(counts, n-1, n, n+1)
		}
	}
	return distinct(counts...)
}

// distinct returns those that are above zero, each once.
func distinct(counts ...int) []int {
	slices.Sort(counts)
	counts = slices.Compact(counts)
	return slices.DeleteFunc(counts, func(n int) bool { return n < 1 })
}

// brief returns up to how many bytes calls are cheap.
func (w world) brief() int {
	if w.scarce {
		return 1 << 10
	}
	return 20 << 10
}

// long is more than the engine folds without a look at the group.
const long = 600 << 10

// jobs returns brief calls of all kinds.
func (g *group) jobs() []*job {
	switch g.s.coll {
	case ccl.CollAllGather:
		return g.gathers()
	case ccl.CollBroadcast:
		return g.broadcasts()
	}
	return g.reductions()
}

// reductions pairs all types with all operations at one small size each, or at
// all of them where calls are cheap, and samples at the other sizes.
func (g *group) reductions() []*job {
	var jobs []*job
	add := func(d ccl.DType, op ccl.Op, count int, n numbers) {
		jobs = append(jobs, &job{coll: ccl.CollAllReduce, dtype: d, op: op, count: count, numbers: n})
	}
	sizes, ops := g.sizes(), ccl.Ops()
	for i, d := range dtypes {
		for k, op := range ops {
			if len(g.ranks) <= 4 && !g.s.short && !g.world.jitter {
				for _, n := range sizes[:len(sizes)-1] {
					add(d, op, n, exact)
				}
			} else {
				add(d, op, sizes[(i+k)%len(sizes)], exact)
			}
		}
		add(d, ops[i%len(ops)], sizes[len(sizes)-1], exact)
		for k, n := range g.edges(d, 0, g.world.brief()) {
			if (i+k)%3 == 0 {
				add(d, ops[(i+k)%len(ops)], n, exact)
			}
		}
	}
	for _, d := range []ccl.DType{ccl.Float32, ccl.Float64} {
		add(d, ccl.Min, 61, odd)
		add(d, ccl.Max, 61, odd)
		for _, op := range []ccl.Op{ccl.Sum, ccl.Avg, ccl.Product} {
			add(d, op, 7, rough)
			add(d, op, 97, rough)
		}
	}
	return jobs
}

// gathers makes the ranks' inputs equally long, different, or empty in part or
// altogether.
func (g *group) gathers() []*job {
	n := len(g.ranks)
	lengths := []func(r int) int{
		func(int) int { return 0 },
		func(int) int { return 1 },
		func(int) int { return n + 1 },
		func(r int) int { return r },
		func(r int) int { return n - 1 - r },
		func(r int) int { return (r * 7) % 3 },
		func(r int) int { return 40 * (r % 2) },
		func(r int) int { return 100 + 37*r%11 },
	}
	for r := range n {
		lengths = append(lengths, func(q int) int { return max(0, 1-max(q-r, r-q)) * 13 }) // rank r alone
	}
	var jobs []*job
	add := func(d ccl.DType, length func(r int) int) {
		j := &job{coll: ccl.CollAllGather, dtype: d, counts: make([]int, n)}
		for r := range j.counts {
			j.counts[r] = length(r)
		}
		jobs = append(jobs, j)
	}
	for i, length := range lengths {
		add(dtypes[i%len(dtypes)], length)
	}
	for i, d := range dtypes {
		for k, count := range g.edges(d, 0, g.world.brief()/n) {
			if (i+k)%2 == 0 {
				add(d, func(r int) int { return max(0, count-(r+k)%n) })
			}
		}
	}
	return jobs
}

// broadcasts tries all roots, and all sizes.
func (g *group) broadcasts() []*job {
	n := len(g.ranks)
	var jobs []*job
	add := func(count int) {
		i := len(jobs)
		jobs = append(jobs, &job{coll: ccl.CollBroadcast, dtype: dtypes[i%len(dtypes)], count: count, root: i % n})
	}
	sizes := append(g.sizes(), 0)
	for range n {
		for _, count := range sizes {
			if len(jobs) < 60 || count <= 1 {
				add(count)
			}
		}
	}
	for _, d := range dtypes {
		for _, count := range g.edges(d, 0, g.world.brief()) {
			if (len(jobs)+count)%2 == 0 {
				add(count)
			}
		}
	}
	return jobs
}

// longJobs returns a few long calls, which cost time: two ranks show what they
// have to show.
func (g *group) longJobs() []*job {
	if len(g.ranks) != 2 || g.world.scarce || g.s.short {
		return nil
	}
	var jobs []*job
	for i, d := range dtypes {
		counts := append(g.edges(d, g.world.brief()+1, long), long/d.Size())
		for k, count := range counts {
			if (i+k)%3 == 0 {
				jobs = append(jobs, &job{
					coll: g.s.coll, dtype: d, op: ccl.Ops()[(i+k)%len(ccl.Ops())],
					count: count, root: i % 2, counts: []int{count, count - i},
				})
			}
		}
	}
	return jobs
}
