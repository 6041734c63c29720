package ccl

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/ccl/internal/layout"
)

// blocks are the blocks of a buffer, one for each rank, of the same length or of the lengths in
// counts. An operation with blocks in several buffers has a blocks for each of these.
type blocks struct {
	operation string
	of        string // the buffer, if the call has counts for two
	each      int
	counts    []int // nil: all have the length each
	displs    []int // their positions; nil: packed

	total, longest int // set by sum
}

func (b *blocks) lengthError(buffer string, expected, actual int) *InvalidBufferSizeError {
	return &InvalidBufferSizeError{Operation: b.operation, Buffer: buffer, Expected: expected, Actual: actual}
}

// argument returns the name of the argument counts or displs.
func (b *blocks) argument(name string) string {
	if b.of != "" {
		return b.of + strings.ToUpper(name[:1]) + name[1:]
	}
	return name
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
	b.total, b.longest = 0, 0
	if b.counts == nil {
		if b.each > math.MaxInt/ranks {
			return &InvalidArgumentError{b.operation, fmt.Sprintf("%d blocks of %d elements are more elements than a buffer can have", ranks, b.each)}
		}
		b.total, b.longest = ranks*b.each, b.each
		return nil
	}

	if len(b.counts) != ranks {
		return b.lengthError(b.argument("counts"), ranks, len(b.counts))
	}
	if b.displs != nil && len(b.displs) != ranks {
		return b.lengthError(b.argument("displs"), ranks, len(b.displs))
	}

	for r, n := range b.counts {
		if n < 0 || n > math.MaxInt-b.total {
			return b.noLength("counts", r, n)
		}
		b.total += n
		b.longest = max(b.longest, n)
	}
	return nil
}

// noLength is the error of a count or displacement that no buffer has.
func (b *blocks) noLength(argument string, rank, n int) error {
	why := "must not be negative"
	if n > 0 {
		why = "is more than a buffer can have"
	}
	return &InvalidArgumentError{b.operation, fmt.Sprintf("%s[%d] is %d, and %s", b.argument(argument), rank, n, why)}
}

// checkIn checks that the blocks lie in a buffer of n elements and do not overlap. It does not
// check that they fill the buffer.
func (b *blocks) checkIn(buffer string, n int) error {
	end := b.total
	if b.displs != nil {
		end = 0
		for r, at := range b.displs {
			if at < 0 || at > math.MaxInt-b.counts[r] {
				return b.noLength("displs", r, at)
			}
			end = max(end, at+b.counts[r])
		}
	}

	if n < end {
		short := b.lengthError(buffer, end, n)
		short.OrMore = true
		return short
	}
	if r, s, ok := layout.Overlap(b.counts, b.displs); ok {
		return &InvalidArgumentError{b.operation, fmt.Sprintf("the places of ranks %d and %d in %s overlap", r, s, buffer)}
	}
	return nil
}

// check checks the numbers, and that the blocks lie in a buffer of n elements, of which b.of is the
// name.
func (b *blocks) check(ranks, n int) error {
	if err := b.sum(ranks); err != nil {
		return err
	}
	return b.checkIn(b.of, n)
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
			r.counts, r.lengths = b.counts, fingerprint.HashCounts(b.counts)
			return
		}
	}
}

// within reports whether part is disjoint from whole or exactly its elements from `at` on.
func within(part, whole Buffer, at int) bool {
	return !overlap(part.data, whole.data) ||
		at+part.Len() <= whole.Len() && same(part.data, whole.Slice(at, at+part.Len()).data)
}

// notNil returns counts, but not nil, which would mean that all blocks have the same length.
func notNil(counts []int) []int {
	if counts == nil {
		return []int{}
	}
	return counts
}

// lengths are the numbers that ranks exchange before a call with blocks that not all ranks know.
// They are kept from call to call.
type lengths struct {
	local, all []int64
	counts     []int
	matrix     layout.Matrix
}

// exchangeLengths gathers the lengths.local of all ranks, of the same length on each, in
// lengths.all.
func (e *engine) exchangeLengths(ctx context.Context, a *arguments, opts []CallOption) error {
	l := &e.scratch.lengths
	l.all = slices.Grow(l.all[:0], e.size*len(l.local))[:e.size*len(l.local)]
	in, out := bufferOf(l.local), bufferOf(l.all)
	r := e.ask(a.coll, a.dtype, in, out, opts)
	r.count, r.each, r.root = len(l.local), len(l.local), a.root
	r.bytes = len(in.data)
	return e.step(ctx, r)
}

// lengthsKernel is the engine's own all-gather.
var lengthsKernel = &Kernel{
	Eager: true, AnyRunner: true,
	Run: func(c *Call) error {
		return c.View(func(v *View) error {
			for r := range c.Size() {
				if err := v.Copy(c.OutBlock(r), r); err != nil {
					return err
				}
			}
			return nil
		})
	},
}

// agreeOnLengths gives all ranks the lengths of the blocks, in lengths.counts, of a call in which
// each rank has one block, of length n, and the root has the counts of all.
func (e *engine) agreeOnLengths(ctx context.Context, a *arguments, n int, counts []int, opts []CallOption) error {
	l := &e.scratch.lengths
	l.local = append(l.local[:0], int64(n), 0)
	if e.rank == a.root {
		l.local[1] = int64(fingerprint.HashCounts(counts))
	}
	if err := e.exchangeLengths(ctx, a, opts); err != nil {
		return err
	}
	l.counts = l.counts[:0]
	for r := range e.size {
		l.counts = append(l.counts, int(l.all[2*r]))
	}

	if uint64(l.all[2*a.root+1]) == fingerprint.HashCounts(l.counts) {
		return nil
	}
	others := make([]int, 0, e.size)
	for r := range e.size {
		if r != a.root {
			others = append(others, r)
		}
	}

	return e.rejectLengths(a.coll, &MismatchError{Field: "counts", Values: []MismatchValue{
		{Value: "other counts than the ranks have", Ranks: []int{a.root}},
		{Value: fmt.Sprintf("of all ranks %v elements", l.counts), Ranks: others},
	}})
}

// agreeOnMatrix gives all ranks the numbers that each sends to and expects from each, in
// lengths.matrix.
func (e *engine) agreeOnMatrix(ctx context.Context, a *arguments, numbers *lists, opts []CallOption) error {
	l := &e.scratch.lengths
	l.local = l.local[:0]
	for _, counts := range [...][]int{numbers.counts, numbers.recvCounts} {
		for _, n := range counts {
			l.local = append(l.local, int64(n))
		}
	}
	if err := e.exchangeLengths(ctx, a, opts); err != nil {
		return err
	}

	l.matrix = layout.Matrix(l.all)
	if from, to, ok := l.matrix.Disagreement(e.size); ok {
		return e.rejectLengths(a.coll, &MismatchError{Field: "counts", Values: []MismatchValue{
			{Value: fmt.Sprintf("rank %d sends %d elements to rank %d", from, l.matrix.Sent(e.size, from, to), to), Ranks: []int{from}},
			{Value: fmt.Sprintf("rank %d expects %d from rank %d", to, l.matrix.Expected(e.size, from, to), from), Ranks: []int{to}},
		}})
	}
	return nil
}

// rejectLengths rejects a call on all ranks, after an exchange of lengths that do not match.
func (e *engine) rejectLengths(coll Collective, err error) error {
	group := ""
	if e.name != "" {
		group = " on group " + e.name
	}
	return e.reject(fmt.Errorf("ccl: %v%s: %w", coll, group, err))
}
