// Package layout has the arithmetic of buffers that are made of blocks, one for each rank.
//
// # Model
//
// counts are the lengths of the blocks in elements and displs their positions; a [Matrix] has the
// lengths of all blocks of an all-to-all.
package layout

// Overlap returns two ranks whose blocks share elements. Blocks in ascending order, the usual case,
// take one pass.
func Overlap(counts, displs []int) (a, b int, ok bool) {
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

// Packed reports whether the blocks lie without gaps in rank order. nil displs mean that they do.
func Packed(counts, displs []int) bool {
	at := 0
	for r, displ := range displs {
		if displ != at && counts[r] != 0 {
			return false
		}
		at += counts[r]
	}
	return true
}

// Matrix is the number of elements that each rank sends to each rank in an all-to-all. The row of
// rank r starts at 2*ranks*r: the numbers that it sends to every rank, then the numbers that it
// expects from every rank.
type Matrix []int64

// Sent returns the number of elements that one rank sends to another.
func (m Matrix) Sent(ranks, from, to int) int { return int(m[2*ranks*from+to]) }

// Expected returns the number of elements that rank `to` expects from rank `from`.
func (m Matrix) Expected(ranks, from, to int) int { return int(m[2*ranks*to+ranks+from]) }

// Sums returns the number of elements that all ranks together send, and the largest numbers that
// one rank sends and receives.
func (m Matrix) Sums(ranks int) (all, longestOut, longestIn int) {
	for r := range ranks {
		out, in := 0, 0
		for s := range ranks {
			out += m.Sent(ranks, r, s)
			in += m.Sent(ranks, s, r)
		}
		all += out
		longestOut, longestIn = max(longestOut, out), max(longestIn, in)
	}
	return all, longestOut, longestIn
}

// Disagreement returns the first two ranks of which one sends another number than the other
// expects.
func (m Matrix) Disagreement(ranks int) (from, to int, ok bool) {
	for from := range ranks {
		for to := range ranks {
			if m.Sent(ranks, from, to) != m.Expected(ranks, from, to) {
				return from, to, true
			}
		}
	}
	return 0, 0, false
}
