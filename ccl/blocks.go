package ccl

import (
	"fmt"
	"math"
)

// blocks are the blocks of a buffer, one for each rank, of the same length or of the lengths in
// counts. An operation with blocks in several buffers has a blocks for each of these.
type blocks struct {
	operation string
	each      int
	counts    []int // nil: all have the length each
	displs    []int // their positions; nil: packed

	total, longest int // set by sum
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

// at returns the position of rank's block.
func (b *blocks) at(rank int) int {
	switch {
	case b.displs != nil:
		return b.displs[rank]
	case b.counts == nil:
		return b.each * rank
	}
	at := 0
	for _, n := range b.counts[:rank] {
		at += n
	}
	return at
}

// sum checks the numbers and adds up the lengths.
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

// fit checks that the blocks lie in a buffer of n elements and do not overlap. It does not check
// that they fill the buffer.
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
	if r, s, ok := overlappingBlocks(b.counts, b.displs); ok {
		return &InvalidArgumentError{b.operation, fmt.Sprintf("the places of ranks %d and %d in %s overlap", r, s, buffer)}
	}
	return nil
}

// put writes the blocks to a request. Blocks of the same length make the same request whether
// they have counts or not.
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

// within reports whether part is disjoint from whole or exactly its elements from `at` on.
func within(part, whole Buffer, at int) bool {
	return !overlap(part.data, whole.data) ||
		at+part.Len() <= whole.Len() && same(part.data, whole.Slice(at, at+part.Len()).data)
}

// overlappingBlocks returns two ranks whose blocks share elements. Blocks in ascending order, the
// usual case, take one pass.
func overlappingBlocks(counts, displs []int) (a, b int, ok bool) {
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
