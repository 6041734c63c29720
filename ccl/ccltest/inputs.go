package ccltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// wrongResult is the error of a rank whose result is not the right one.
type wrongResult struct {
	job   *job
	rank  int
	text  string
	known bool // the text names the mistake
}

func (e *wrongResult) Error() string { return e.text }

// arrivals is the result of a call with inputs of one rank.
type arrivals struct {
	layout
	inputs int     // the number of different inputs
	values []int32 // the small number in each element of the blocks, or unknown
}

const unknown = -1

// lone returns element i of the only input of a call on n ranks that is not zero, as one of that many
// small numbers. In a sum of up to n of them the remainder by n+1 tells how many they are.
func lone(i, n, inputs int) int { return 1 + i%inputs*(n+1) }

// loneOf takes such a sum apart: into the number of inputs and, if that is one, its element.
func loneOf(value, n int) (times, at int) { return value % (n + 1), value / (n + 1) }

// smalls are numbers of a type by their bits: 0, 1, 2, ..., as far as all of them differ.
type smalls map[uint64]int

// mostSmalls bounds the length of smalls.
const mostSmalls = 4096

func (o *oracle[T]) smalls() smalls {
	o.counted.Do(func() {
		o.small = make(smalls)
		for i := range mostSmalls {
			bits := o.bits(o.of(i))
			if _, ok := o.small[bits]; ok {
				return
			}
			o.small[bits] = i
		}
	})
	return o.small
}

// inputs returns the number of different elements of lone inputs on n ranks, whose doubles are small
// numbers too.
func (s smalls) inputs(n int) int { return (len(s)/2-2)/(n+1) + 1 }

// arrived returns the result of a job with inputs of one rank.
func (a *typed[T]) arrived() *arrivals {
	numbers := a.smalls()
	all := &arrivals{layout: a.out.layout, inputs: numbers.inputs(a.job.ranks)}
	for _, b := range a.out.blocks {
		for _, got := range a.out.elements[b.at : b.at+b.n] {
			value, ok := numbers[a.bits(got)]
			if !ok {
				value = unknown
			}
			all.values = append(all.values, int32(value))
		}
	}
	return all
}

// inputsText says which inputs are missing in the result of a call that was wrong, and which are
// there twice. It makes the call again, once with zeros and once for each rank with inputs of that
// rank alone: small numbers that count its elements. A reduction becomes a sum. If the call has less
// than two elements for each rank, it makes one that has before that, which shows more.
func (s *subject) inputsText(w world, n int, seed uint64, wrong *wrongResult) string {
	if wrong.known {
		return ""
	}
	tried := []*job{wrong.job}
	if longer := wrong.job.longer(); longer != nil {
		tried = []*job{longer, wrong.job}
	}
	right := false
	for _, j := range tried {
		results, err := s.loneResults(w, n, seed, j)
		if err != nil {
			continue
		}
		lines := faultsText(wrong.rank, results)
		right = len(lines) == 0
		if more := len(lines) - mostFaults; more > 0 {
			lines = append(lines[:mostFaults:mostFaults], fmt.Sprintf("... %d more", more))
		}
		if !right {
			return fmt.Sprintf("\ninputs, in %v:\n  %s", j.alone(0), strings.Join(lines, "\n  "))
		}
	}
	switch {
	case !right:
		return ""
	case wrong.job.coll.Reduces():
		return "\ninputs: in a sum of the same lengths each arrives once; look at the operation, its order, earlier calls and timing"
	}
	return "\ninputs: in the same call alone each arrives where it should; look at earlier calls and timing"
}

// mostFaults is the number of lines about inputs in a failure.
const mostFaults = 6

// mostArrivals bounds the elements that loneResults returns.
const mostArrivals = 4 << 20

// loneResults makes a job with the inputs of no rank, and then with those of each alone. Its result
// has an entry for each of these jobs, and in it one for each rank.
func (s *subject) loneResults(w world, n int, seed uint64, of *job) ([][]*arrivals, error) {
	results := make([][]*arrivals, n+1)
	if elements(of.recv(of.root)) > mostArrivals/n/(n+1) {
		return nil, &skipped{why: "the result is too long"}
	}
	var jobs []*job
	for k := range results {
		results[k] = make([]*arrivals, n)
		jobs = append(jobs, of.alone(k-1))
	}
	err := s.with(w, n, probe{seed: seed}, func(g *group) error {
		if can, err := g.supported(jobs); err != nil || len(can) < len(jobs) {
			return &skipped{why: "the kernel does not support it", cause: err}
		}
		return g.each(func(r *rank) error {
			for k, j := range jobs {
				a := r.attempt(j)
				if err := do(a, j, func(attempt) error { return nil }); err != nil {
					return err
				}
				results[k][r.me] = a.arrived()
			}
			return nil
		})
	})
	return results, err
}

// alone returns a job like j in which only one rank has inputs that are not zero; -1: none.
func (j *job) alone(only int) *job {
	like := &job{
		coll: j.coll, ranks: j.ranks, dtype: j.dtype, count: j.count, root: j.root, counts: j.counts, matrix: j.matrix,
		vform: j.vform, places: j.places, placing: j.placing, shift: j.shift, lone: true, only: only,
	}
	if j.coll.Reduces() {
		like.op = ccl.Sum
	}
	return like
}

// longer returns a job like j with two elements in each block, or for each rank if it has no blocks.
// It is nil if j has as many.
func (j *job) longer() *job {
	const each = 2
	short := func(n int) bool { return n < each }
	like := j.alone(0)
	switch {
	case slices.ContainsFunc(slices.Concat(j.matrix...), short):
		like.matrix = slices.Repeat([][]int{slices.Repeat([]int{each}, j.ranks)}, j.ranks)
	case slices.ContainsFunc(j.counts, short):
		like.counts = slices.Repeat([]int{each}, j.ranks)
	case j.matrix == nil && j.counts == nil && j.count < each*j.ranks:
		like.count = each * j.ranks
	default:
		return nil
	}
	return like
}

// faultsText describes what is wrong with the results of all ranks, those of rank first first. What
// is wrong on several ranks it says once.
func faultsText(first int, results [][]*arrivals) []string {
	var all []string
	ranks := make(map[string][]int)
	n := len(results[0])
	for i := range n {
		r := (first + i) % n
		for _, fault := range faults(r, results) {
			if ranks[fault] == nil {
				all = append(all, fault)
			}
			ranks[fault] = append(ranks[fault], r)
		}
	}
	for i, fault := range all {
		on := ranks[fault]
		slices.Sort(on)
		all[i] = fmt.Sprintf("on %s, %s", transport.RanksText(on), fault)
	}
	return all
}

// faults describes the runs of elements of rank's result that are wrong in the same way.
func faults(rank int, results [][]*arrivals) []string {
	var lines []string
	result, at := results[0][rank], 0
	for _, b := range result.blocks {
		for i := 0; i < b.n; {
			kind, k := mishap(b, i, at, rank, results), i+1
			for k < b.n && mishap(b, k, at, rank, results) == kind {
				k++
			}
			if kind != "" {
				where := fmt.Sprintf("element %d", i)
				if k > i+1 {
					where = fmt.Sprintf("elements %d to %d", i, k-1)
				}
				if len(result.blocks) > 1 {
					where += fmt.Sprintf(" of rank %d's block", b.from)
				}
				lines = append(lines, where+": "+kind)
			}
			i = k
		}
		at += b.n
	}
	return lines
}

// mishap describes what is wrong with element i of a block of rank's result, "" if it is right. The
// values of the block begin at `at`.
func mishap(b block, i, at, rank int, results [][]*arrivals) string {
	var missing, twice, more, changed, foreign []int
	moved := make(map[int][]int) // by the number of elements
	for k := range len(results) - 1 {
		result := results[k+1][rank]
		got, want := int(result.values[at+i]), (b.lo+i)%result.inputs
		times, element := loneOf(got, len(results)-1)
		belongs := b.from == k
		if b.terms > 0 {
			belongs = k < b.terms
		}
		switch {
		case !belongs && got != 0:
			foreign = append(foreign, k)
		case !belongs || times == 1 && element == want:
		case got == 0:
			missing = append(missing, k)
		case got == unknown || times == 0:
			changed = append(changed, k)
		case times == 2:
			twice = append(twice, k)
		case times > 2:
			more = append(more, k)
		default:
			by := (element - want + result.inputs) % result.inputs
			if by > result.inputs/2 {
				by -= result.inputs
			}
			moved[by] = append(moved[by], k)
		}
	}
	var parts []string
	add := func(ranks []int, what string) {
		if len(ranks) > 0 {
			parts = append(parts, "the input of "+transport.RanksText(ranks)+" "+what)
		}
	}
	add(missing, "is missing")
	add(twice, "is there twice")
	add(more, "is there more than twice")
	add(changed, "is there, changed")
	for _, by := range slices.Sorted(maps.Keys(moved)) {
		if by < 0 {
			add(moved[by], "comes from "+plural(-by, "element")+" before")
		} else {
			add(moved[by], "comes from "+plural(by, "element")+" further on")
		}
	}
	add(foreign, "is there, where it does not belong")
	if results[0][rank].values[at+i] != 0 { // with all inputs zero
		held := "what memory held before the call is added"
		if len(missing) > 0 {
			held = "what memory held before the call is there"
		}
		parts = append(parts, held)
	}
	return strings.Join(parts, ", ")
}
