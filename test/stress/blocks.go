package stress

import "slices"

// blocks are the blocks of a buffer, one for each rank of a group.
type blocks struct {
	counts []int // lengths
	displs []int // positions; nil: packed
	total  int   // length of the buffer
}

func packed(counts []int) blocks { return blocks{counts: counts, total: sum(counts)} }

// place draws the positions of blocks.
func (d *drawing) place(counts []int) blocks {
	if d.IntN(3) == 0 {
		return packed(counts)
	}
	b := blocks{counts: counts, displs: make([]int, len(counts))}
	for _, r := range d.Perm(len(counts)) {
		b.total += d.IntN(3)
		b.displs[r] = b.total
		b.total += counts[r]
	}
	b.total += d.IntN(3)
	return b
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// at returns where block r begins and ends.
func (b *blocks) at(r int) (lo, hi int) {
	lo = sum(b.counts[:r])
	if b.displs != nil {
		lo = b.displs[r]
	}
	return lo, lo + b.counts[r]
}

// filled returns a copy of x with the blocks at their positions.
func filled[T any](x []T, b blocks, block func(r int) []T) []T {
	x = slices.Clone(x)
	for r := range b.counts {
		lo, hi := b.at(r)
		copy(x[lo:hi], block(r))
	}
	return x
}
