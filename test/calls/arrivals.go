package calls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccl/goccl/transport"
)

// Arrivals is the result of a call with inputs of one rank.
type Arrivals struct {
	layout
	inputs int     // the number of different inputs
	values []int32 // the small number in each element of the blocks, or unknown
}

const unknown = -1

// lone returns element i of the only input of a call on n ranks that is not zero, as one of that
// many small numbers. In a sum of up to n of them the remainder by n+1 tells how many they are.
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

// inputs returns the number of different elements of lone inputs on n ranks, whose doubles are
// small numbers too.
func (s smalls) inputs(n int) int { return (len(s)/2-2)/(n+1) + 1 }

// Arrived returns the result of a call with inputs of one rank.
func (a *typed[T]) Arrived() *Arrivals {
	numbers := a.smalls()
	all := &Arrivals{layout: a.out.layout, inputs: numbers.inputs(a.c.Ranks)}
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

// FaultsText describes what is wrong with the results of all ranks, those of rank first first. What
// is wrong on several ranks it says once.
func FaultsText(first int, results [][]*Arrivals) []string {
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
func faults(rank int, results [][]*Arrivals) []string {
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
func mishap(b block, i, at, rank int, results [][]*Arrivals) string {
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

// plural returns a number of things.
func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
