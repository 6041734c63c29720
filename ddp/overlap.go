package ddp

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
)

// process is a text that no other process has: addresses of two ranks are comparable if theirs are
// equal.
var process = sync.OnceValue(rand.Text)

// memory is where a slice of a rank lies.
type memory struct {
	Slice      string // such as `the gradient of "w"`
	First, End string // as text that has the same length on each run, and the order of the numbers
}

// listMemory returns the slices of a rank that have elements.
func listMemory(params []Parameter, buffers []Tensor) (all []memory) {
	add := func(slice elements, name, of string) {
		if slice != nil && slice.count() > 0 {
			first, end := slice.span()
			all = append(all, memory{fmt.Sprintf("the %s %q", name, of), fmt.Sprintf("%016x", first), fmt.Sprintf("%016x", end)})
		}
	}

	for _, p := range params {
		add(p.tensor.elements, "values of", p.tensor.name)
		add(p.gradient, "gradient of", p.tensor.name)
	}
	for _, b := range buffers {
		add(b.elements, "buffer", b.name)
	}
	return all
}

// findOverlap returns which two slices have memory in common, or "", and of which ranks of the job
// they are. All ranks find the same two. members are the ranks of the job.
func findOverlap(ranks []presence, members []int) (text string, of []int) {
	type slice struct {
		memory
		process string
		rank    int
	}

	var all []slice
	for rank, p := range ranks {
		for _, m := range p.Memory {
			all = append(all, slice{m, p.Process, members[rank]})
		}
	}
	slices.SortStableFunc(all, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.First, b.First))
	})

	for i := 1; i < len(all); i++ { // if none before overlaps its next, only neighbours can overlap
		a, b := all[i-1], all[i]
		switch {
		case a.process != b.process || a.End <= b.First:
		case a.rank == b.rank:
			return fmt.Sprintf("rank %d: %s and %s overlap: give each memory of its own, and pass a parameter with two uses once", a.rank, a.Slice, b.Slice), []int{a.rank}
		default:
			of = []int{min(a.rank, b.rank), max(a.rank, b.rank)}
			return fmt.Sprintf("ranks %d and %d: %s and %s overlap; ranks that are goroutines have slices of their own: make them in the function that each rank runs, not at package level",
				of[0], of[1], a.Slice, b.Slice), of
		}
	}
	return "", nil
}
