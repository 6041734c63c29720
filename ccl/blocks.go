package ccl

import (
	"fmt"
	"math"
)

// blocks are the blocks of a buffer, one for each rank: as long as each other, or
// counts says how long. Of an operation that has the blocks in several buffers, each
// of these has a blocks.
type blocks struct {
	operation string
	each      int
	counts    []int // nil: all are of length each
	displs    []int // where they begin; nil: packed
	// By sum:
	total, longest int
}

func (b *blocks) wrong(buffer string, expected, actual int) error {
	return &InvalidBufferSizeError{Operation: b.operation, Buffer: buffer, Expected: expected, Actual: actual}
}

func (b *blocks) count(rank int) int {
	if b.counts != nil {
		return b.counts[rank]
	}
	return b.each
}

// packed returns where rank's block begins where all are packed.
func (b *blocks) packed(rank int) int {
	if b.counts == nil || len(b.counts) < rank {
		return b.each * rank
	}
	at := 0
	for _, n := range b.counts[:rank] {
		at += n
	}
	return at
}

// sum checks the numbers, in the order in which S0.4 names the errors, and adds up the
// lengths.
func (b *blocks) sum(ranks int) error {
	if b.counts == nil {
		if b.each > math.MaxInt/ranks {
			return &InvalidArgumentError{b.operation, fmt.Sprintf("%d blocks of %d elements are more than there are", ranks, b.each)}
		}
		b.total, b.longest = ranks*b.each, b.each
		return nil
	}
	if len(b.counts) != ranks {
		return b.wrong("counts", ranks, len(b.counts))
	}
	if b.displs != nil && len(b.displs) != ranks {
		return b.wrong("displs", ranks, len(b.displs))
	}
	for r, n := range b.counts {
		if n < 0 || n > math.MaxInt-b.total {
			return &InvalidArgumentError{b.operation, fmt.Sprintf("counts[%d] is %d", r, n)}
		}
		b.total += n
		b.longest = max(b.longest, n)
	}
	return nil
}

// fit checks that the blocks lie in a buffer of n elements, beside each other. Where
// they are to fill it exactly is for the caller to say.
func (b *blocks) fit(buffer string, n int) error {
	end := b.total
	if b.displs != nil {
		end = 0
		for r, at := range b.displs {
			if at < 0 || at > math.MaxInt-b.counts[r] {
				return &InvalidArgumentError{b.operation, fmt.Sprintf("displs[%d] is %d", r, at)}
			}
			end = max(end, at+b.counts[r])
		}
	}
	if n < end {
		return b.wrong(buffer, end, n)
	}
	if r, s, ok := overlappingPlaces(b.counts, b.displs); ok {
		return &InvalidArgumentError{b.operation, fmt.Sprintf("the places of ranks %d and %d in %s overlap", r, s, buffer)}
	}
	return nil
}

// at returns where rank's block begins.
func (b *blocks) at(rank int) int {
	if b.displs != nil {
		return b.displs[rank]
	}
	return b.packed(rank)
}

// put writes the blocks to a request. Blocks that are alike are all the same to it,
// whether counts says so or not.
func (b *blocks) put(r *request) {
	r.count, r.each, r.counts = b.total, b.each, nil
	if b.counts == nil {
		return
	}
	r.each = b.longest
	for _, n := range b.counts {
		if n != b.longest {
			r.counts, r.lengths = b.counts, hashCounts(b.counts)
			return
		}
	}
}

// within reports whether part is disjoint from whole or exactly its elements from
// `at` on.
func within(part, whole Buffer, at int) bool {
	return !overlap(part.data, whole.data) ||
		at+part.Len() <= whole.Len() && same(part.data, whole.Slice(at, at+part.Len()).data)
}

// overlappingPlaces returns two ranks whose places share elements. Places in
// ascending order, the usual case, take one pass.
func overlappingPlaces(counts, displs []int) (a, b int, ok bool) {
	ascending, end := true, 0
	for r := range displs {
		if counts[r] == 0 {
			continue
		}
		ascending = ascending && displs[r] >= end
		end = displs[r] + counts[r]
	}
	if ascending {
		return 0, 0, false
	}
	for a := range displs {
		for b := a + 1; b < len(displs); b++ {
			if counts[a] > 0 && counts[b] > 0 && displs[a] < displs[b]+counts[b] && displs[b] < displs[a]+counts[a] {
				return a, b, true
			}
		}
	}
	return 0, 0, false
}
