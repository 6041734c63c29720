package calls

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccl/goccl/transport"
)

// A kernel that moves or adds the wrong inputs is found out by calls in which all inputs are zero,
// except those of one rank (Call.Alone). Its inputs are small numbers, of which a sum shows both
// how many have arrived and, if it is one, which element that was.

// Arrivals is what has arrived at one rank in such a call.
type Arrivals struct {
	layout
	inputs int     // after how many elements the numbers of the inputs repeat themselves
	values []int32 // the small number in each element of the blocks, or unknown
}

const unknown = -1

// lone returns the small number of element i of the only inputs that are not zero, in a call on n
// ranks. Numbers repeat themselves after that many inputs.
//
// It is 1 modulo n+1. So in a sum of up to n of them the remainder by n+1 is how many they are.
func lone(i, n, inputs int) int { return 1 + i%inputs*(n+1) }

// splitLones returns how many numbers of lone are in a sum and, if it is one, its element.
func splitLones(sum, n int) (times, element int) { return sum % (n + 1), sum / (n + 1) }

// smalls are numbers of a type by their bits: 0, 1, 2, ..., as far as all of them differ.
type smalls map[uint64]int

// maxSmalls bounds the length of smalls.
const maxSmalls = 4096

// smalls returns the small numbers of the type.
func (o *oracle[T]) smalls() smalls {
	o.counted.Do(func() {
		o.small = make(smalls)
		for i := range maxSmalls {
			bits := o.bits(o.of(i))
			if _, ok := o.small[bits]; ok {
				return
			}
			o.small[bits] = i
		}
	})
	return o.small
}

// inputs returns how many different numbers lone can have on n ranks: so few that the double of the
// largest is a small number too.
func (s smalls) inputs(n int) int { return (len(s)/2-2)/(n+1) + 1 }

// Arrived returns what has arrived at this rank in a call with inputs of one rank.
func (a *typed[T]) Arrived() *Arrivals {
	numbers := a.smalls()
	arrived := &Arrivals{layout: a.out.layout, inputs: numbers.inputs(a.c.Ranks)}
	for _, b := range a.out.blocks {
		for _, got := range a.out.elements[b.at : b.at+b.n] {
			value, ok := numbers[a.bits(got)]
			if !ok {
				value = unknown
			}
			arrived.values = append(arrived.values, int32(value))
		}
	}
	return arrived
}

// FaultsText describes what is wrong with the results of all ranks, in lines. It begins with rank
// `first`, and says once what is wrong on several ranks.
//
// results[0] has the results, by rank, of a call in which all inputs are zero. results[k+1] has
// those of the call with the inputs of rank k alone.
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
			// Elements i to end-1 have the same fault.
			fault, end := faultOf(b, i, at, rank, results), i+1
			for end < b.n && faultOf(b, end, at, rank, results) == fault {
				end++
			}

			if fault != "" {
				where := fmt.Sprintf("element %d", i)
				if end > i+1 {
					where = fmt.Sprintf("elements %d to %d", i, end-1)
				}
				if len(result.blocks) > 1 {
					where += fmt.Sprintf(" of rank %d's block", b.from)
				}
				lines = append(lines, where+": "+fault)
			}
			i = end
		}

		at += b.n
	}
	return lines
}

// faultOf describes what is wrong with element i of a block of rank's result, "" if it is right.
// The values of the block begin at `at`.
func faultOf(b block, i, at, rank int, results [][]*Arrivals) string {
	var found inputFaults
	for k := range len(results) - 1 {
		found.add(k, len(results)-1, b, i, results[k+1][rank], at)
	}

	parts := found.texts()
	if results[0][rank].values[at+i] != 0 { // with all inputs zero
		held := "what memory held before the call is added"
		if len(found.missing) > 0 {
			held = "what memory held before the call is there"
		}
		parts = append(parts, held)
	}
	return strings.Join(parts, ", ")
}

// inputFaults are what has become of the inputs for an element: the ranks whose input has each
// fault.
type inputFaults struct {
	missing, twice, more, changed, foreign []int
	moved                                  map[int][]int // by the number of elements
}

// add adds the input of rank k of n for element i of a block. result is that of the call in which
// only rank k has inputs.
func (f *inputFaults) add(k, n int, b block, i int, result *Arrivals, at int) {
	got, want := int(result.values[at+i]), (b.lo+i)%result.inputs
	times, element := splitLones(got, n)
	belongs := b.from == k
	if b.terms > 0 {
		belongs = k < b.terms
	}

	switch {
	case !belongs && got != 0:
		f.foreign = append(f.foreign, k)
	case !belongs || times == 1 && element == want:
		// It is right.
	case got == 0:
		f.missing = append(f.missing, k)
	case got == unknown || times == 0:
		f.changed = append(f.changed, k)
	case times == 2:
		f.twice = append(f.twice, k)
	case times > 2:
		f.more = append(f.more, k)
	default:
		// One input, but of another element. Numbers repeat themselves: take the shorter way.
		by := (element - want + result.inputs) % result.inputs
		if by > result.inputs/2 {
			by -= result.inputs
		}
		if f.moved == nil {
			f.moved = make(map[int][]int)
		}
		f.moved[by] = append(f.moved[by], k)
	}
}

// texts returns a text for each kind of fault.
func (f *inputFaults) texts() (parts []string) {
	add := func(ranks []int, what string) {
		if len(ranks) > 0 {
			parts = append(parts, "the input of "+transport.RanksText(ranks)+" "+what)
		}
	}

	add(f.missing, "is missing")
	add(f.twice, "is there twice")
	add(f.more, "is there more than twice")
	add(f.changed, "is there, changed")

	for _, by := range slices.Sorted(maps.Keys(f.moved)) {
		if by < 0 {
			add(f.moved[by], "comes from "+plural(-by, "element")+" before")
		} else {
			add(f.moved[by], "comes from "+plural(by, "element")+" further on")
		}
	}

	add(f.foreign, "is there, where it does not belong")
	return parts
}

// plural returns a number of things, such as "2 elements".
func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
