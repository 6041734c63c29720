package topology

import "fmt"

// Ring is one rank's view of a ring through all ranks in rank order, made by
// NewRing, or of a ring through one row or column of a torus, where Rank is the
// position in it and Next and Prev are neighbours. It is the arithmetic of ring
// algorithms, whatever the Kind: a ring of one rank has itself as Next and Prev,
// and its algorithms take no step.
type Ring struct {
	Size int // number of ranks
	Rank int // this rank, 0 to Size-1
	Next int // the rank after this one, 0 after the last: where it sends
	Prev int // the rank before this one, Size-1 before 0: where it receives from
}

// NewRing returns rank's view of the ring of size ranks.
// Precondition: 0 <= rank < size; otherwise it panics.
//
// The ring all-reduce reads as follows in these terms. The buffer is cut into
// Size blocks, and every rank does the same, each seen from its own position.
//
// Reduce-scatter, steps s = 0 to Size-2: send Block(-s) to Next, and fold what
// comes from Prev into Block(-s-1). Prev's Block(-s) is our Block(-s-1), so both
// sides mean the same block. What a rank sends in a step is what it folded in
// the step before, so each block collects one more rank's share at every step as
// it travels, and after the last step a rank holds Block(1) with the shares of
// all.
//
// All-gather, steps s = 0 to Size-2: send Block(1-s) to Next, and store what
// comes from Prev as Block(-s). The finished blocks make the round once more;
// each rank begins with the one that it finished.
//
// That is 2(Size-1) steps of one block each: every rank sends 2(Size-1)/Size of
// its buffer, and no all-reduce made of messages lets all ranks send less. A
// block is folded along the ring, beginning with the rank of its own number: the
// order depends on the block and on Size, never on timing.
//
// Source: Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for
// Clusters of Workstations, Journal of Parallel and Distributed Computing 69
// (2009).
func NewRing(size, rank int) Ring {
	if rank < 0 || rank >= size {
		panic(fmt.Sprintf("topology: there is no rank %d in a ring of %s", rank, ranks(size)))
	}
	r := Ring{Size: size, Rank: rank}
	r.Next, r.Prev = r.Block(1), r.Block(-1)
	return r
}

// Block returns (Rank + k) mod Size, from 0 to Size-1, for any k: the block of
// the rank k places further on, or back if k is negative. Block(0) is the rank's
// own, Block(1) that of Next, Block(-1) that of Prev.
func (r Ring) Block(k int) int {
	k %= r.Size // Go's remainder has the sign of k
	if k < 0 {
		k += r.Size
	}
	k -= r.Size - r.Rank // not k + Rank, which may overflow
	if k < 0 {
		k += r.Size
	}
	return k
}
