package ccl

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// View shows the inputs of all ranks, one piece at a time. It is valid inside the function that
// Call.View calls.
type View struct {
	call   *Call
	inputs inputs
	// The piece is the bytes lo to hi of every buffer that is that long.
	lo, hi int
	part   Range // of the piece: what this execution reduces
	// resultLo to resultHi are the bytes that ReduceToAll has reduced of a piece that is a copy,
	// relative to the piece.
	resultLo, resultHi int
	isFree             bool // verbs move no bytes between ranks
	isWatched          bool // a failure of the group ends verbs, which use other ranks' memory
}

// inputs is where a view's inputs come from: payloads, memory or copies. The ranges of bytes are
// relative to the view's piece.
type inputs interface {
	// input returns the part of rank's input that lies in the piece.
	input(v *View, rank int) []byte
	// reduceToAll reduces a range of all inputs to the same range of the outputs.
	reduceToAll(v *View, lo, hi int) error
	// scanToAll reduces a range of the inputs up to each rank's to the same range of its output.
	scanToAll(v *View, lo, hi int) error
}

// Range is the elements from Lo to before Hi.
type Range struct {
	Lo, Hi int
}

// View calls f once for each piece of the inputs of all ranks, with the same pieces in the same
// order on every rank, and returns f's first error.
//
// There is usually one piece, the inputs themselves; a transport that has to copy shows as much as
// it can hold. When View has returned on all ranks, everything that f stored through the view has
// arrived. A call has one view.
func (c *Call) View(f func(*View) error) error {
	if c.err != nil {
		return c.stopped(noRank, noRank)
	}
	if c.opened {
		return c.misuse(errors.New("the kernel opened a second view"))
	}
	c.opened = true

	v := &c.view
	v.lo, v.hi = 0, c.bytes
	v.isFree, v.isWatched = false, false

	switch {
	case c.payload:
		v.inputs, v.isFree = payloads{}, true
		v.part = v.whole()
	case c.engine.memory != nil:
		v.inputs, v.isWatched = buffers{}, true
		v.part = c.part(v.hi)
		c.clock++
	// The transport copies, and shows the inputs in pieces.
	default:
		v.inputs = copies{}
		c.clock++
		return c.fail(v.showPieces(f))
	}
	return c.fail(f(v))
}

// inputBytes returns the length of rank's input.
func (c *Call) inputBytes(rank int) int {
	switch collectives[c.coll].input {
	case oneBlock:
		return c.BlockLen(rank) << c.out.shift
	case ofRoot:
		if rank != c.root {
			return 0
		}
	case blockForEach:
		return c.InRange(rank, c.Size()-1).Hi << c.out.shift
	}
	return c.plan.shape.Bytes
}

// Input returns the part of rank's input that lies in the piece. It must not be written. Reading
// it does not count as traffic.
func (v *View) Input(rank int) Buffer {
	return Buffer{data: v.inputs.input(v, rank), shift: v.call.out.shift}
}

// Part returns the part of the piece that this execution reduces. The parts of all ranks make up
// the piece. It may be empty, and it is the whole piece where every rank reduces for itself.
func (v *View) Part() Range { return v.part }

// whole returns the elements of the piece.
func (v *View) whole() Range { return Range{0, v.Len()} }

// ReduceToAll reduces the range of all ranks' inputs in rank order, ((x0 op x1) op x2) ..., in one
// pass, applies the operation's epilogue, and stores the result to the same elements of all ranks'
// outputs, or of the root's if only that has one.
//
// It is for all-reduces and reduces. Every rank reduces its Part, at once or in consecutive ranges.
// The kernel reads no inputs in other ranks' parts, and none in a range that it has reduced:
// results may replace them.
func (v *View) ReduceToAll(part Range) error {
	c := v.call
	if collectives[c.coll].view != reduceToAll {
		return c.misuse(fmt.Errorf("the kernel calls ReduceToAll, which all-reduces and reduces have, in a call of %s", c.coll))
	}
	lo, hi, err := v.bytes(part)
	if err != nil || lo == hi {
		return err
	}
	c.reducer.Reset()
	return v.inputs.reduceToAll(v, lo, hi)
}

// fromAll adds a range of all ranks' inputs to the sources of a reduction.
func (v *View) fromAll(lo, hi int) {
	for r := range v.call.Size() {
		v.call.reducer.From(v.inputs.input(v, r)[lo:hi])
	}
}

// finishReduction reduces to all outputs the n bytes of which the reducer has the buffers.
func (v *View) finishReduction(n int) error {
	c := v.call
	moved := 2 * (c.Size() - 1) * n
	if collectives[c.coll].rooted {
		moved = c.Size() * n // the root's own store counts as one to another rank
	}
	return v.done(c.reducer.Many(n, v.watched()), moved)
}

// Reduce reduces dst.Len elements of all ranks' inputs, from element `at` on, in rank order,
// applies the operation's epilogue, and stores the result to dst, a buffer of this rank: the
// elements that lie in the piece.
func (v *View) Reduce(dst Buffer, at int) error {
	c := v.call
	lo, hi := v.clip(at, dst)
	if lo >= hi {
		return nil
	}
	c.reducer.Reset()
	v.fromAll(lo-v.lo, hi-v.lo)
	from := at << c.out.shift
	c.reducer.To(dst.data[lo-from : hi-from])
	return v.done(c.reducer.Many(hi-lo, v.watched()), (c.Size()-1)*(hi-lo))
}

// ScanToAll reduces the range of all ranks' inputs in rank order and stores to the same elements
// of every rank's output the result so far: in a scan including that rank's own input; in an
// exclusive scan without it, and nothing on rank 0. Every rank does its Part.
func (v *View) ScanToAll(part Range) error {
	c := v.call
	if collectives[c.coll].view != scanToAll {
		return c.misuse(fmt.Errorf("the kernel calls ScanToAll, which scans have, in a call of %s", c.coll))
	}
	lo, hi, err := v.bytes(part)
	if err != nil || lo == hi {
		return err
	}
	c.reducer.Reset()
	return v.inputs.scanToAll(v, lo, hi)
}

// scanAlone does this rank's part of a scan whose inputs are copies: every rank reduces for itself.
func (v *View) scanAlone(lo, hi int) error {
	c := v.call
	inputs := c.rank + 1
	if c.coll == CollExScan {
		inputs--
	}

	if inputs == 0 {
		return nil
	}
	for r := range inputs {
		c.reducer.From(v.inputs.input(v, r)[lo:hi])
	}
	c.reducer.To(c.out.data[v.lo+lo : v.lo+hi])
	return v.done(c.reducer.Many(hi-lo, v.watched()), c.rank*(hi-lo))
}

// Offset returns the position of the piece in the inputs, in elements.
func (v *View) Offset() int { return v.lo >> v.call.out.shift }

// Len returns the length of the piece in elements: the length of the longest input in it.
func (v *View) Len() int { return (v.hi - v.lo) >> v.call.out.shift }

// partAlign is the alignment of parts in bytes, so that no two ranks store to one cache line of
// an aligned buffer.
const partAlign = 64

// part returns this rank's part of a piece of n bytes.
func (c *Call) part(n int) Range { return partOf(n, c.Rank(), c.Size(), c.out.shift) }

// partOf returns a rank's part of a piece of n bytes, in elements of 1<<shift bytes.
func partOf(n, rank, ranks int, shift uint8) Range {
	lo, hi := BlockRange((n+partAlign-1)/partAlign, rank, ranks)
	return Range{min(lo*partAlign, n) >> shift, min(hi*partAlign, n) >> shift}
}

// bytes returns a range of the piece in bytes.
func (v *View) bytes(part Range) (lo, hi int, err error) {
	c := v.call
	lo, hi = part.Lo<<c.out.shift, part.Hi<<c.out.shift
	if lo < 0 || lo > hi || hi > v.hi-v.lo {
		return 0, 0, c.misuse(errors.New("the kernel reduces a range outside of the view's piece"))
	}
	return lo, hi, nil
}

// clip returns the bytes of the inputs that lie both in the piece and in the part that starts at
// an element and is as long as dst.
func (v *View) clip(at int, dst Buffer) (lo, hi int) {
	from := at << v.call.out.shift
	return max(from, v.lo), min(from+len(dst.data), v.hi)
}

// watched returns the endpoint whose failure ends a verb of this view: nil if all that the verb
// needs is in copies (rule copiesSuffice).
func (v *View) watched() transport.Endpoint {
	if v.isWatched {
		return v.call.engine.ep
	}
	return nil
}

// done ends a verb that has moved bytes between ranks. It is not ok if the group has failed.
func (v *View) done(ok bool, moved int) error {
	if !v.isFree {
		v.call.moved += moved
	}
	if !ok {
		return v.call.fail(transport.ErrFailed)
	}
	return nil
}

// Copy copies the part of rank's input that lies in the piece to its place in dst, which is as
// long as the whole input.
func (v *View) Copy(dst Buffer, rank int) error {
	c := v.call
	if len(dst.data) != c.inputBytes(rank) {
		return c.misuse(errors.New("the kernel copies an input to a buffer of another length"))
	}
	return v.CopyPart(dst, rank, 0)
}

// CopyPart copies dst.Len elements of rank's input, from element `at` on, to dst: those that lie
// in the piece.
func (v *View) CopyPart(dst Buffer, rank, at int) error {
	c := v.call
	lo, hi := v.clip(at, dst)
	if lo >= hi {
		return nil
	}

	src := v.inputs.input(v, rank)
	if hi-v.lo > len(src) {
		return c.misuse(errors.New("the kernel copies more than an input has"))
	}

	from := at << c.out.shift
	into, src := dst.data[lo-from:hi-from], src[lo-v.lo:hi-v.lo]
	if same(into, src) {
		return nil
	}
	moved := len(src)
	if rank == c.Rank() {
		moved = 0
	}
	return v.done(c.reducer.Copy(into, src, c.plan.work, v.watched()), moved)
}
