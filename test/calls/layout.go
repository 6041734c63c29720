package calls

import "github.com/goccl/goccl/ccl"

// layout describes the contents of a buffer of a call.
type layout struct {
	length int
	blocks []block
	counts []int // lengths of the blocks, if every rank has one
	displs []int // their first elements; nil: packed
}

// block is a run of elements of a buffer: of a rank's input, or of a reduction.
type block struct {
	at, n int
	from  int // the rank
	terms int // the number of ranks, from 0 on, whose inputs are reduced; 0: no reduction
	lo    int // its first element in the inputs, if the blocks of each are packed
}

// whole is the layout of a buffer of one block.
func whole(b block) layout { return layout{length: b.n, blocks: []block{b}} }

// elements returns the number of elements in the blocks.
func (l layout) elements() int {
	sum := 0
	for _, b := range l.blocks {
		sum += b.n
	}
	return sum
}

// Places is an arrangement of the blocks of a buffer.
type Places uint8

// The arrangements.
const (
	Packed   Places = iota // displs is nil
	Spaced                 // with gaps
	Reversed               // with gaps, the last rank's first
	Rotated                // with gaps, in an order of each rank's own
)

// spread returns the layout of rank's buffer with one block for each rank.
func (p Places) spread(rank int, counts []int) layout {
	n := len(counts)
	l := layout{counts: counts, blocks: make([]block, n)}
	if p != Packed {
		l.displs = make([]int, n)
	}

	for i := range n {
		r := i
		switch p {
		case Reversed:
			r = n - 1 - i
		case Rotated:
			r = (i + rank) % n
		}
		if p != Packed {
			l.length += 1 + i%3
			l.displs[r] = l.length
		}

		l.blocks[r] = block{at: l.length, n: counts[r], from: r}
		l.length += counts[r]
	}
	if p != Packed {
		l.length += 2
	}
	return l
}

// dealt is spread with blocks of rank's own input.
func (p Places) dealt(rank int, counts []int) layout {
	l := p.spread(rank, counts)
	for r := range l.blocks {
		l.blocks[r].from, l.blocks[r].lo = rank, total(counts[:r])
	}
	return l
}

func total(counts []int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

func (c *Call) input(rank int) layout {
	switch contents := c.Coll.Traits().Input; {
	case c.Coll.Traits().FromRoot && rank != c.Root:
		return layout{}
	case contents == ccl.RankBlock:
		return whole(block{n: c.Counts[rank], from: rank})
	case contents == ccl.RankBlocks:
		return c.places().dealt(rank, c.row(rank))
	}
	return whole(block{n: c.Count, from: rank})
}

// places returns the arrangement of the blocks: those of a reduction are packed.
func (c *Call) places() Places {
	if c.Coll.Traits().Reduces {
		return Packed
	}
	return c.Places
}

// row returns the lengths of the blocks in a rank's input.
func (c *Call) row(rank int) []int {
	if c.Matrix != nil {
		return c.Matrix[rank]
	}
	return c.Counts
}

// output returns the layout of rank's expected output.
func (c *Call) output(rank int) layout {
	toRoot := c.Coll.Traits().Rooted && !c.Coll.Traits().FromRoot
	switch contents := c.Coll.Traits().Output; {
	case toRoot && rank != c.Root:
		return layout{}
	case contents == ccl.RankBlock:
		b := block{n: c.Counts[rank], from: c.Root, lo: total(c.Counts[:rank])}
		if c.Coll.Traits().Reduces {
			b.from, b.terms = 0, c.Ranks
		}
		return whole(b)
	case contents == ccl.RankBlocks:
		return c.gathered(rank)
	// A vector.
	case !c.Coll.Traits().Reduces:
		return whole(block{n: c.Count, from: c.Root})
	}

	terms := c.Ranks
	if c.Coll.Traits().Scans {
		terms = rank + 1
	}
	if c.Coll == ccl.CollExScan {
		terms = rank
	}
	if terms == 0 {
		return layout{length: c.Count} // it stays unchanged
	}
	return whole(block{n: c.Count, terms: terms})
}

// gathered returns the layout of an output with a block from each rank.
func (c *Call) gathered(rank int) layout {
	if c.Matrix == nil {
		return c.Places.spread(rank, c.Counts)
	}
	column := make([]int, c.Ranks)
	for r, row := range c.Matrix {
		column[r] = row[rank]
	}
	l := c.Places.spread(rank, column)
	for r, row := range c.Matrix {
		l.blocks[r].lo = total(row[:rank])
	}
	return l
}

// Placing is the set of ranks that work in place.
type Placing uint8

// The placings.
const (
	Apart   Placing = iota // none
	Inside                 // all
	Mixed                  // even ranks
	Flipped                // odd ranks
)

func (p Placing) isInPlace(rank int) bool {
	return p == Inside || p == Mixed && rank%2 == 0 || p == Flipped && rank%2 != 0
}

// HasPlacing reports whether ranks can work in place or not: a broadcast has one buffer, and an
// all-to-all would overwrite what others read.
func (c *Call) HasPlacing() bool { return c.Coll != ccl.CollBroadcast && !c.isMatrix() }

// InPlace reports whether rank works in place, and then the position of the shorter buffer in the
// longer one.
func (c *Call) InPlace(rank int) (at int, ok bool) {
	in, out := c.input(rank), c.output(rank)
	switch {
	case !c.HasPlacing():
		return 0, !c.isMatrix()
	case c.Coll.Traits().Output == ccl.RankBlocks && len(out.blocks) > 0:
		at = out.blocks[rank].at
	case c.Coll.Traits().Input == ccl.RankBlocks && len(in.blocks) > 0:
		at = in.blocks[rank].at
	}
	return at, c.Placing.isInPlace(rank) && (!c.Coll.Traits().Rooted || rank == c.Root)
}
