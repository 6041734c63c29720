package ccltest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/goccl/goccl/ccl"
)

// job is one call that all ranks of a group make.
type job struct {
	coll    ccl.Collective
	dtype   ccl.DType
	op      ccl.Op  // of a reduction
	count   int     // elements of a vector
	root    int     // of a broadcast
	counts  []int   // of an all-gather
	places  places  // of an all-gather
	numbers numbers // what the inputs are like
	placing placing // which ranks work in place
	shift   int     // elements by which buffers lie off their allocation
	salt    uint64  // makes the inputs other than those of other jobs

	once     sync.Once
	expected any // what a reduction has to give, a []T
}

// placing says which ranks work in place.
type placing uint8

const (
	apart   placing = iota // none
	inside                 // all
	mixed                  // some
	flipped                // the others
)

func (p placing) inPlace(rank int) bool {
	switch p {
	case inside:
		return true
	case mixed:
		return rank%2 == 0
	case flipped:
		return rank%2 != 0
	}
	return false
}

// places says where the inputs go in the output of an all-gather.
type places uint8

const (
	packed   places = iota // displs is nil
	spaced                 // with gaps
	reversed               // with gaps, the last rank's first
	rotated                // with gaps, and every rank has its own order
)

// displs returns rank's displacements, nil if packed, and how long its output is.
func (j *job) displs(rank int) (displs []int, length int) {
	if j.places == packed {
		for _, n := range j.counts {
			length += n
		}
		return nil, length
	}
	n := len(j.counts)
	displs = make([]int, n)
	for i := range n {
		r := i
		switch j.places {
		case reversed:
			r = n - 1 - i
		case rotated:
			r = (i + rank) % n
		}
		length += 1 + i%3
		displs[r] = length
		length += j.counts[r]
	}
	return displs, length + 2
}

// input returns how many elements rank brings.
func (j *job) input(rank int) int {
	switch {
	case j.coll == ccl.CollAllGatherV:
		return j.counts[rank]
	case j.coll == ccl.CollBroadcast && rank != j.root:
		return 0
	}
	return j.count
}

func (j *job) String() string {
	text := fmt.Sprintf("%v of %v", j.coll, j.dtype)
	switch j.coll {
	case ccl.CollAllReduce:
		text += fmt.Sprintf(", %v of %d elements", j.op, j.count)
	case ccl.CollBroadcast:
		text += fmt.Sprintf(", %d elements from root %d", j.count, j.root)
	case ccl.CollAllGatherV:
		text += fmt.Sprintf(", counts %v", j.counts)
		text += [...]string{"", ", with gaps", ", with gaps, in reverse order", ", with gaps, each rank in its own order"}[j.places]
	}
	text += [...]string{"", ", in place", ", in place on even ranks", ", in place on odd ranks"}[j.placing]
	return text + [...]string{"", ", floats that round", ", with NaN, infinities and -0"}[j.numbers]
}

// shape returns what the engine asks a kernel's Supports with.
func (j *job) shape(g *group) ccl.Shape {
	longest, total := 0, 0
	for r := range g.ranks {
		longest = max(longest, j.input(r))
		total += j.input(r)
	}
	if j.coll == ccl.CollAllReduce {
		total = j.count
	}
	size := j.dtype.Size()
	return ccl.Shape{
		Collective: j.coll, Ranks: len(g.ranks), Bytes: longest * size, Total: total * size,
		DType: j.dtype, Op: j.op, Topology: g.ranks[0].comm.Settings().Topology(),
	}
}

// supported returns those of the jobs that the kernel supports, each with a salt
// of its own. An error says that there is none.
func (g *group) supported(jobs []*job) ([]*job, error) {
	var can []*job
	for _, j := range jobs {
		if _, err := g.ranks[0].comm.Settings().Choose(j.shape(g), ""); err == nil {
			j.salt = mix(uint64(len(can)))
			can = append(can, j)
		}
	}
	if len(can) == 0 {
		return nil, &skipped{fmt.Sprintf("the kernel supports none of %d calls on %d ranks, such as %v", len(jobs), len(g.ranks), jobs[0])}
	}
	return can, nil
}

// dtypes in an order in which neighbours differ much.
var dtypes = []ccl.DType{ccl.Float32, ccl.Int64, ccl.Uint8, ccl.Float64, ccl.Int32}

// sizes returns vector lengths: around the number of ranks, and any.
func (g *group) sizes() []int {
	n := len(g.ranks)
	return distinct(1, n-1, n, n+1, 1000)
}

// edges returns vector lengths around those at which something switches, up to
// limit bytes.
func (g *group) edges(d ccl.DType, limit int) []int {
	var counts []int
	for _, at := range g.switches {
		if at <= limit {
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

// limit returns how long the vectors of the group may be, in bytes: long ones cost
// time, and two ranks show what they have to show.
func (g *group) limit() int {
	switch {
	case g.world.scarce:
		return 2 << 10
	case len(g.ranks) == 2 && !g.world.jitter && !g.s.short:
		return long
	}
	return 20 << 10
}

const long = 600 << 10

// jobs returns calls of all kinds.
func (g *group) jobs() []*job {
	switch g.s.coll {
	case ccl.CollAllGatherV:
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
		for k, n := range g.edges(d, g.limit()) {
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
	if g.limit() == long { // longer than the engine folds without a look at the group
		add(ccl.Float32, ccl.Avg, 1<<18/4+1, exact)
		add(ccl.Int64, ccl.Max, long/8, exact)
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
		j := &job{coll: ccl.CollAllGatherV, dtype: d, counts: make([]int, n)}
		for r := range j.counts {
			j.counts[r] = length(r)
		}
		jobs = append(jobs, j)
	}
	for i, length := range lengths {
		add(dtypes[i%len(dtypes)], length)
	}
	for i, d := range dtypes {
		for k, count := range g.edges(d, g.limit()/n) {
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
		for _, count := range g.edges(d, g.limit()) {
			if (len(jobs)+count)%2 == 0 {
				add(count)
			}
		}
	}
	return jobs
}
