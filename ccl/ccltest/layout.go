package ccltest

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

// places is an arrangement of the blocks of a buffer.
type places uint8

const (
	packed   places = iota // displs is nil
	spaced                 // with gaps
	reversed               // with gaps, the last rank's first
	rotated                // with gaps, in an order of each rank's own
)

// spread returns the layout of rank's buffer with one block for each rank.
func (p places) spread(rank int, counts []int) layout {
	n := len(counts)
	l := layout{counts: counts, blocks: make([]block, n)}
	if p != packed {
		l.displs = make([]int, n)
	}
	for i := range n {
		r := i
		switch p {
		case reversed:
			r = n - 1 - i
		case rotated:
			r = (i + rank) % n
		}
		if p != packed {
			l.length += 1 + i%3
			l.displs[r] = l.length
		}
		l.blocks[r] = block{at: l.length, n: counts[r], from: r}
		l.length += counts[r]
	}
	if p != packed {
		l.length += 2
	}
	return l
}

// dealt is spread with blocks of rank's own input.
func (p places) dealt(rank int, counts []int) layout {
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

// send returns the layout of rank's input.
func (j *job) send(rank int) layout {
	switch j.coll {
	case ccl.CollAllGather, ccl.CollGather:
		return whole(block{n: j.counts[rank], from: rank})
	case ccl.CollReduceScatter:
		return packed.dealt(rank, j.counts)
	case ccl.CollAllToAll:
		return j.places.dealt(rank, j.matrix[rank])
	case ccl.CollScatter:
		if rank == j.root {
			return j.places.dealt(rank, j.counts)
		}
		return layout{}
	case ccl.CollBroadcast:
		if rank != j.root {
			return layout{}
		}
	}
	return whole(block{n: j.count, from: rank})
}

// recv returns the layout of rank's expected output.
func (j *job) recv(rank int) layout {
	switch j.coll {
	case ccl.CollReduce, ccl.CollGather:
		if rank != j.root {
			return layout{}
		}
	}
	switch j.coll {
	case ccl.CollAllGather, ccl.CollGather:
		return j.places.spread(rank, j.counts)
	case ccl.CollScatter:
		return whole(block{n: j.counts[rank], from: j.root, lo: total(j.counts[:rank])})
	case ccl.CollReduceScatter:
		return whole(block{n: j.counts[rank], terms: j.ranks, lo: total(j.counts[:rank])})
	case ccl.CollAllToAll:
		column := make([]int, j.ranks)
		for r := range column {
			column[r] = j.matrix[r][rank]
		}
		l := j.places.spread(rank, column)
		for r := range column {
			l.blocks[r].lo = total(j.matrix[r][:rank])
		}
		return l
	case ccl.CollBroadcast:
		return whole(block{n: j.count, from: j.root})
	case ccl.CollScan:
		return whole(block{n: j.count, terms: rank + 1})
	case ccl.CollExScan:
		if rank == 0 {
			return layout{length: j.count} // it stays unchanged
		}
		return whole(block{n: j.count, terms: rank})
	}
	return whole(block{n: j.count, terms: j.ranks})
}

// placing is the set of ranks that work in place.
type placing uint8

const (
	apart   placing = iota // none
	inside                 // all
	mixed                  // even ranks
	flipped                // odd ranks
)

func (p placing) inPlace(rank int) bool {
	return p == inside || p == mixed && rank%2 == 0 || p == flipped && rank%2 != 0
}

// shared reports whether rank works in place, and then the position of the shorter buffer
// in the longer one.
func (j *job) shared(rank int, send, recv layout) (at int, ok bool) {
	switch j.coll {
	case ccl.CollAllToAll:
		return 0, false
	case ccl.CollBroadcast:
		return 0, true
	case ccl.CollAllGather, ccl.CollGather:
		if len(recv.blocks) > 0 {
			at = recv.blocks[rank].at
		}
	case ccl.CollReduceScatter, ccl.CollScatter:
		if len(send.blocks) > 0 {
			at = send.blocks[rank].at
		}
	}
	return at, j.placing.inPlace(rank) && (!j.coll.Rooted() || rank == j.root)
}
