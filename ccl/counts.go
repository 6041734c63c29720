package ccl

import (
	"context"
	"fmt"
	"slices"
)

// lengths are the numbers that ranks exchange before a call with blocks that not all ranks know.
// They are kept from call to call.
type lengths struct {
	mine, all []int64
	counts    []int
	matrix    matrix
}

// matrix is the number of elements that each rank sends to each rank in an all-to-all. The row of
// rank r starts at 2*ranks*r: the numbers that it sends to every rank, then the numbers that it
// expects from every rank.
type matrix []int64

func (m matrix) sent(ranks, from, to int) int     { return int(m[2*ranks*from+to]) }
func (m matrix) expected(ranks, from, to int) int { return int(m[2*ranks*to+ranks+from]) }

// sums returns the number of elements that all ranks together send, and the largest numbers that
// one rank sends and receives.
func (m matrix) sums(ranks int) (all, longestOut, longestIn int) {
	for r := range ranks {
		out, in := 0, 0
		for s := range ranks {
			out += m.sent(ranks, r, s)
			in += m.sent(ranks, s, r)
		}
		all += out
		longestOut, longestIn = max(longestOut, out), max(longestIn, in)
	}
	return all, longestOut, longestIn
}

// disagreement returns the first difference between what one rank sends and another expects.
func (m matrix) disagreement(ranks int) error {
	for from := range ranks {
		for to := range ranks {
			sent, expected := m.sent(ranks, from, to), m.expected(ranks, from, to)
			if sent != expected {
				return &MismatchError{Field: "counts", Values: []MismatchValue{
					{Value: fmt.Sprintf("rank %d sends %d elements to rank %d", from, sent, to), Ranks: []int{from}},
					{Value: fmt.Sprintf("rank %d expects %d from rank %d", to, expected, from), Ranks: []int{to}},
				}}
			}
		}
	}
	return nil
}

// exchangeLengths gathers the lengths.mine of all ranks, of the same length on each, in
// lengths.all.
func (c *Communicator) exchangeLengths(ctx context.Context, coll Collective, dtype DType, root int, opts []CallOption) error {
	l := &c.lengths
	l.all = slices.Grow(l.all[:0], c.size*len(l.mine))[:c.size*len(l.mine)]
	in, out := bufferOf(l.mine), bufferOf(l.all)
	r := c.ask(coll, dtype, in, out, opts)
	r.count, r.each, r.root = len(l.mine), len(l.mine), root
	r.bytes = len(in.data)
	return c.step(ctx, r)
}

// lengthsKernel is the engine's own all-gather.
var lengthsKernel = &Kernel{
	Eager: true, AnyRunner: true,
	Run: func(c *Call) error {
		return c.View(func(w *View) error {
			for r := range c.Size() {
				if err := w.Copy(c.OutBlock(r), r); err != nil {
					return err
				}
			}
			return nil
		})
	},
}

// agreeOnLengths gives all ranks the lengths of the blocks, in lengths.counts, of a call in which
// each rank has one block, of length n, and the root has the counts of all.
func (c *Communicator) agreeOnLengths(ctx context.Context, coll Collective, dtype DType, n int, counts []int, root int, opts []CallOption) error {
	l := &c.lengths
	l.mine = append(l.mine[:0], int64(n), 0)
	if c.rank == root {
		l.mine[1] = int64(hashCounts(counts))
	}
	if err := c.exchangeLengths(ctx, coll, dtype, root, opts); err != nil {
		return err
	}
	l.counts = l.counts[:0]
	for r := range c.size {
		l.counts = append(l.counts, int(l.all[2*r]))
	}
	if uint64(l.all[2*root+1]) == hashCounts(l.counts) {
		return nil
	}
	others := make([]int, 0, c.size)
	for r := range c.size {
		if r != root {
			others = append(others, r)
		}
	}
	return c.refuseLengths(coll, &MismatchError{Field: "counts", Values: []MismatchValue{
		{Value: "other counts than the ranks have", Ranks: []int{root}},
		{Value: fmt.Sprintf("of all ranks %v elements", l.counts), Ranks: others},
	}})
}

// agreeOnMatrix gives all ranks the numbers that each sends to and expects from each, in
// lengths.matrix.
func (c *Communicator) agreeOnMatrix(ctx context.Context, dtype DType, send, recv []int, opts []CallOption) error {
	l := &c.lengths
	l.mine = l.mine[:0]
	for _, counts := range [...][]int{send, recv} {
		for _, n := range counts {
			l.mine = append(l.mine, int64(n))
		}
	}
	if err := c.exchangeLengths(ctx, collAllToAllLengths, dtype, 0, opts); err != nil {
		return err
	}
	l.matrix = matrix(l.all)
	if err := l.matrix.disagreement(c.size); err != nil {
		return c.refuseLengths(collAllToAllLengths, err)
	}
	return nil
}

// refuseLengths refuses a call on all ranks, after an exchange of lengths that do not match.
func (c *Communicator) refuseLengths(coll Collective, err error) error {
	group := ""
	if c.name != "" {
		group = " on group " + c.name
	}
	return c.refuse(fmt.Errorf("ccl: %v, call %d%s, rank %d: %w", coll, c.number(c.seq+1), group, c.rank, err))
}
