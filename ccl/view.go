package ccl

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// View shows the inputs of all ranks, one piece at a time. It is valid inside the function that
// Call.View calls.
type View struct {
	call *Call
	mode viewMode
	// The piece is the bytes lo to hi of every buffer that is that long.
	lo, hi int
	// The bytes of a staged piece that ReduceToAll has reduced, relative to the piece.
	resultLo, resultHi int
}

// viewMode is where a view's inputs come from.
type viewMode uint8

const (
	fromPayloads viewMode = iota // the copies that travelled with the synchronisation
	fromMemory                   // the ranks' own buffers
	fromStaging                  // copies made piece by piece
)

// Range is the elements from Lo to before Hi.
type Range struct {
	Lo, Hi int
}

// View calls f once for each piece of the inputs of all ranks, with the same pieces in the same
// order on every rank, and returns f's first error. There is usually one piece, the inputs
// themselves; a transport that has to copy shows as much as it can hold. When View has returned
// on all ranks, everything that f stored through the view has arrived. A call has one view.
func (c *Call) View(f func(*View) error) error {
	if c.err != nil {
		return c.stopped(noRank, noRank)
	}
	if c.opened {
		return c.misuse(errors.New("the kernel opened a second view"))
	}
	c.opened = true
	v := &c.view
	v.call, v.lo, v.hi = c, 0, c.bytes
	ep := c.comm.ep
	switch {
	case c.payload:
		v.mode = fromPayloads
	case c.comm.memory != nil:
		v.mode = fromMemory
		c.clock++
	default:
		c.clock++
		return c.fail(c.stagedView(v, ep.Staging(), f))
	}
	return c.fail(f(v))
}

// stagedView shows copies of the inputs, piece by piece. Ranks publish the results of one piece
// together with the inputs of the next.
func (c *Call) stagedView(v *View, s transport.Staging, f func(*View) error) error {
	v.mode = fromStaging
	longest, step := v.hi, s.PieceBytes()
	toAll := collectives[c.coll].view == reduceToAll
	if !c.comm.entry.Staged {
		c.putInput(s, 0)
	}
	for lo := 0; lo < longest; lo += step {
		if err := s.Flip(); err != nil {
			return err
		}
		if lo > 0 && toAll {
			c.takeResults(s, lo-step) // before putInput replaces them (rule takeBeforeCopy)
		}
		v.lo, v.hi = lo, min(lo+step, longest)
		v.resultLo, v.resultHi = 0, 0
		if err := f(v); err != nil {
			return err
		}
		if v.resultLo < v.resultHi {
			s.PutResult(v.resultLo, v.resultHi)
		}
		if lo+step < longest {
			c.putInput(s, lo+step)
		}
	}
	if !toAll {
		return nil
	}
	if err := s.Flip(); err != nil {
		return err
	}
	c.takeResults(s, (longest-1)/step*step)
	return nil
}

// putInput puts the piece of this rank's input that starts at byte lo.
func (c *Call) putInput(s transport.Staging, lo int) {
	hi := min(lo+s.PieceBytes(), c.bytes)
	piece := c.in.data[min(lo, len(c.in.data)):min(hi, len(c.in.data))]
	switch {
	case !c.plan.choice.Kernel.ReadsOwnPart || !collectives[c.coll].parted:
		s.PutInput(piece, 0, 0)
	case c.comm.parts != nil:
		c.pieceLo, c.pieceHi = lo, hi
		c.comm.parts.PutParts(piece, c.partOfPiece)
	default:
		lo, hi := c.partFor(c.rank, lo, hi) // no other rank reads it
		s.PutInput(piece, min(lo, len(piece)), min(hi, len(piece)))
	}
}

// takeResults copies the other ranks' results of the piece that starts at a byte.
func (c *Call) takeResults(s transport.Staging, at int) {
	if len(c.out.data) == 0 {
		return
	}
	for r := range c.Size() {
		lo, hi, result := s.Result(r)
		if lo < hi && r != c.rank {
			if hi > len(c.out.data)-at {
				panic(&ProtocolError{Peer: r, Text: fmt.Sprintf("it shows results up to byte %d of a piece of %d", hi, len(c.out.data)-at)})
			}
			copy(c.out.data[at+lo:at+hi], result)
		}
	}
}

// partFor returns the bytes of the piece of bytes lo to hi of this rank's input that rank `to` reads, relative to
// the piece, if the kernel reads its own part only.
func (c *Call) partFor(to, lo, hi int) (from, until int) {
	var at Range
	switch coll := c.coll; {
	case collectives[coll].view == reduceToAll:
		at = partOf(hi-lo, to, c.Size(), c.out.shift)
		return at.Lo << c.out.shift, at.Hi << c.out.shift
	case coll == CollGather && to == c.root:
		return 0, hi - lo
	case coll == CollGather:
		return 0, 0
	default: // reduce_scatter, scatter, all_to_all
		at = c.InRange(c.rank, to)
	}
	from, until = max(at.Lo<<c.out.shift, lo), min(at.Hi<<c.out.shift, hi)
	if from >= until {
		return 0, 0
	}
	return from - lo, until - lo
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
	return Buffer{data: v.input(rank), shift: v.call.out.shift}
}

func (v *View) input(rank int) []byte {
	c := v.call
	n := c.inputBytes(rank)
	lo, hi := min(v.lo, n), min(v.hi, n)
	switch {
	case v.mode == fromPayloads:
		return c.payloadOf(rank, n)
	case rank == c.rank:
		return c.in.data[lo:hi] // and not a copy, which may not be in this core's caches
	case v.mode == fromMemory:
		send, _ := c.comm.memory.Buffers(rank)
		return shown(rank, send, n)[:n]
	}
	return c.comm.ep.Staging().Input(rank, hi-lo)
}

// payloadOf returns rank's input, of n bytes, in a call whose inputs travel with the
// synchronisation.
func (c *Call) payloadOf(rank, n int) []byte {
	if rank == c.rank && n > transport.InlineBytes {
		return c.in.data // and not a copy, which may not be in this core's caches
	}
	return c.comm.ep.Payload(rank, n) // another rank may have written to so short an input since
}

// shown returns b, a buffer of rank, if it has the n bytes that the call needs. Where ranks are
// processes its length comes from shared memory.
func shown(rank int, b []byte, n int) []byte {
	if len(b) < n {
		panic(&ProtocolError{Peer: rank, Text: fmt.Sprintf("it shows a buffer of %d bytes where this rank expects %d", len(b), n)})
	}
	return b
}

// Offset returns the position of the piece in the inputs, in elements.
func (v *View) Offset() int { return v.lo >> v.call.out.shift }

// Len returns the length of the piece in elements: the length of the longest input in it.
func (v *View) Len() int { return (v.hi - v.lo) >> v.call.out.shift }

// partAlign is the alignment of parts in bytes, so that no two ranks store to one cache line of
// an aligned buffer.
const partAlign = 64

// Mine returns the part of the piece that this execution reduces. The parts of all ranks make up
// the piece. It may be empty, and it is the whole piece where every rank reduces for itself.
func (v *View) Mine() Range {
	c := v.call
	n := v.hi - v.lo
	if v.mode == fromPayloads || v.mode == fromStaging && collectives[c.coll].view == scanToAll {
		return Range{0, n >> c.out.shift}
	}
	return c.part(n)
}

// part returns this rank's part of a piece of n bytes.
func (c *Call) part(n int) Range { return partOf(n, c.Rank(), c.Size(), c.out.shift) }

// partOf returns a rank's part of a piece of n bytes, in elements of 1<<shift bytes.
func partOf(n, rank, ranks int, shift uint8) Range {
	lo, hi := BlockRange((n+partAlign-1)/partAlign, rank, ranks)
	return Range{min(lo*partAlign, n) >> shift, min(hi*partAlign, n) >> shift}
}

// ReduceToAll reduces the range of all ranks' inputs in rank order, ((x0 op x1) op x2) ..., in
// one pass, applies the operation's epilogue, and stores the result to the same place of all
// ranks' outputs, or of the root's if only that has one. It is for all-reduces and reduces. Every
// rank reduces its part (Mine), at once or in consecutive ranges. The kernel reads no inputs in
// other ranks' parts, and none in a range that it has reduced: results may replace them.
func (v *View) ReduceToAll(part Range) error {
	c := v.call
	if collectives[c.coll].view != reduceToAll {
		return c.misuse(fmt.Errorf("the kernel calls ReduceToAll, which all-reduces and reduces have, in a call of %s", c.coll))
	}
	lo, hi, err := v.bytes(part)
	if err != nil || lo == hi || v.mode == fromPayloads && len(c.out.data) == 0 {
		return err
	}
	f := &c.reducer
	f.Reset()
	if v.mode == fromPayloads {
		for r := range c.Size() {
			f.From(c.payloadOf(r, v.hi)[lo:hi])
		}
		f.To(c.out.data[lo:hi])
		f.Many(hi-lo, nil)
		return nil
	}
	for r := range c.Size() {
		f.From(v.input(r)[lo:hi])
	}
	switch v.mode {
	case fromMemory:
		for r := range c.Size() {
			if _, recv := c.comm.memory.Buffers(r); len(recv) > 0 {
				f.To(shown(r, recv, hi)[lo:hi])
			}
		}
	case fromStaging:
		v.toStaged(lo, hi)
		switch {
		case v.resultLo == v.resultHi:
			v.resultLo, v.resultHi = lo, hi
		case lo == v.resultHi:
			v.resultHi = hi
		default:
			return c.misuse(errors.New("the kernel reduces ranges of one piece that are not consecutive"))
		}
	}
	moved := 2 * (c.Size() - 1) * (hi - lo)
	if collectives[c.coll].rooted {
		moved = c.Size() * (hi - lo) // the root's own store counts as one to another rank
	}
	return v.done(f.Many(hi-lo, v.watched()), moved)
}

// toStaged adds the destinations of a range of a staged piece: this rank's own output, and the
// staged inputs of the other ranks that have an output, from which these take the result.
func (v *View) toStaged(lo, hi int) {
	c, s := v.call, v.call.comm.ep.Staging()
	for r := range c.Size() {
		switch {
		case r == c.rank:
			if len(c.out.data) > 0 {
				c.reducer.To(c.out.data[v.lo+lo : v.lo+hi])
			}
		case !collectives[c.coll].rooted || r == c.root:
			c.reducer.To(s.Input(r, hi)[lo:hi])
		}
	}
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
	f := &c.reducer
	f.Reset()
	for r := range c.Size() {
		f.From(v.input(r)[lo-v.lo : hi-v.lo])
	}
	from := at << c.out.shift
	f.To(dst.data[lo-from : hi-from])
	return v.done(f.Many(hi-lo, v.watched()), (c.Size()-1)*(hi-lo))
}

// ScanToAll reduces the range of all ranks' inputs in rank order and stores to the same place of
// every rank's output the result so far: in a scan including that rank's own input; in an
// exclusive scan without it, and nothing on rank 0. Every rank does its part (Mine).
func (v *View) ScanToAll(part Range) error {
	c := v.call
	lo, hi, err := v.bytes(part)
	if err != nil || lo == hi {
		return err
	}
	f := &c.reducer
	f.Reset()
	exclusive := c.coll == CollExScan
	if v.mode != fromMemory { // for this rank alone
		last := c.rank + 1
		if exclusive {
			last--
		}
		if last == 0 {
			return nil
		}
		for r := range last {
			f.From(v.input(r)[lo:hi])
		}
		f.To(c.out.data[v.lo+lo : v.lo+hi])
		return v.done(f.Many(hi-lo, v.watched()), c.rank*(hi-lo))
	}
	for r := range c.Size() {
		_, recv := c.comm.memory.Buffers(r)
		f.From(v.input(r)[lo:hi])
		f.To(shown(r, recv, hi)[lo:hi])
	}
	return v.done(f.Scan(hi-lo, exclusive, v.watched()), 2*(c.Size()-1)*(hi-lo))
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
	if v.mode == fromMemory {
		return v.call.comm.ep
	}
	return nil
}

// done ends a verb that has moved bytes between ranks. It is not ok if the group has failed.
func (v *View) done(ok bool, moved int) error {
	if v.mode != fromPayloads {
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
	src := v.input(rank)
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
