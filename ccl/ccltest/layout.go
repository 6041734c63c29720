package ccltest

import "github.com/goccl/goccl/ccl"

// layout says what lies where in a buffer of a call.
type layout struct {
	length int
	blocks []block
	counts []int // of the blocks, where there is one for each rank
	displs []int // where those begin; nil: packed
}

// block is a run of elements of a buffer: elements of a rank's input, or of a
// reduction.
type block struct {
	at, n int
	from  int // the rank
	folds int // how many ranks, from 0 on, come together; 0: it is no reduction
	lo    int // where in the inputs it begins, if all blocks of each are packed
}

// whole is the layout of a buffer that is one block.
func whole(b block) layout { return layout{length: b.n, blocks: []block{b}} }

// places says how the blocks of a buffer lie.
type places uint8

const (
	packed   places = iota // displs is nil
	spaced                 // with gaps
	reversed               // with gaps, the last rank's first
	rotated                // with gaps, and every rank has its own order
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

// dealt is spread of blocks of rank's own input.
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

// send returns what rank's input is like.
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

// recv returns what rank's output has to be like.
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
		return whole(block{n: j.counts[rank], folds: j.ranks, lo: total(j.counts[:rank])})
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
		return whole(block{n: j.count, folds: rank + 1})
	case ccl.CollExScan:
		if rank == 0 {
			return layout{length: j.count} // which stays as it is
		}
		return whole(block{n: j.count, folds: rank})
	}
	return whole(block{n: j.count, folds: j.ranks})
}

// placing says which ranks work in place.
type placing uint8

const (
	apart   placing = iota // none
	inside                 // all
	mixed                  // some
	flipped                // the others
)

func (p placing) inPlace(rank int) bool {
	switch p {
	case inside:
		return true
	case mixed:
		return rank%2 == 0
	case flipped:
		return rank%2 != 0
	}
	return false
}

// shared reports whether rank works in place, and where in its longer buffer the
// shorter begins then.
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
