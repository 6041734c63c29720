package topology

import "fmt"

// Ring is one rank's position in a ring through all ranks in rank order, made by NewRing, or
// through one row or column of a torus, where Rank is the position in it and Next and Prev
// are neighbours. In a ring of one rank, Next and Prev are the rank itself, and ring
// algorithms take no step.
type Ring struct {
	Size int // number of ranks
	Rank int // this rank, 0 to Size-1
	Next int // the rank after this one, 0 after the last: where it sends
	Prev int // the rank before this one, Size-1 before 0: where it receives from
}

// NewRing returns rank's position in the ring of size ranks.
// Precondition: 0 <= rank < size; otherwise it panics.
//
// A ring all-reduce cuts the buffer into Size blocks. Every rank makes the same steps.
//
// Reduce-scatter, steps s = 0 to Size-2: send Block(-s) to Next, and reduce what comes from
// Prev into Block(-s-1). Prev's Block(-s) is this rank's Block(-s-1), so both mean the same
// block. A rank sends the block that it reduced in the step before, so each block collects
// the input of one more rank at every step, and after the last step a rank has Block(1) with
// the inputs of all.
//
// All-gather, steps s = 0 to Size-2: send Block(1-s) to Next, and store what comes from Prev
// as Block(-s). The complete blocks go around the ring once more; each rank starts with the
// one that it completed.
//
// These are 2(Size-1) steps of one block each: every rank sends 2(Size-1)/Size of its buffer,
// the minimum for an all-reduce by messages. A block is reduced along the ring, starting at
// the rank with the block's number: the order depends on the block and on Size, not on timing.
//
// Source: Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for
// Clusters of Workstations, Journal of Parallel and Distributed Computing 69
// (2009).
func NewRing(size, rank int) Ring {
	if rank < 0 || rank >= size {
		panic(fmt.Sprintf("topology: no rank %d in a ring of %s", rank, ranks(size)))
	}
	r := Ring{Size: size, Rank: rank}
	r.Next, r.Prev = r.Block(1), r.Block(-1)
	return r
}

// Block returns (Rank + k) mod Size, from 0 to Size-1, for any k: the block of
// the rank k places further on, or back if k is negative. Block(0) is the rank's
// own, Block(1) Next's, Block(-1) Prev's.
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
