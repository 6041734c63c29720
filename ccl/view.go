package ccl

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// View shows the inputs of all ranks, one piece at a time. It is valid inside
// the function that Call.View calls.
type View struct {
	call *Call
	mode viewMode
	// The piece is the bytes lo to hi of every buffer that is so long.
	lo, hi int
	// What ReduceToAll has folded of a piece that is staged, relative to the piece. It
	// lies in this rank's own output, or where it has none in spare.
	resultLo, resultHi int
	spare              scratch
}

// viewMode is where a window's inputs come from.
type viewMode uint8

const (
	fromPayloads viewMode = iota // the copies that came with the synchronisation
	fromMemory                   // the ranks' own buffers
	fromStaging                  // copies made piece by piece
)

// Range is a run of elements of a window's piece, from Lo on and before Hi.
type Range struct {
	Lo, Hi int
}

// View opens the view on all ranks' inputs: it calls f once for each piece of
// them, with the same pieces in the same order on every rank, and returns f's
// first error. There is usually one piece, the inputs themselves; a transport
// that has to copy shows as much as it can hold. What f stores through the window
// has arrived when Window returns on all ranks. A call has one window.
func (c *Call) View(f func(*View) error) error {
	if c.err != nil {
		return c.err
	}
	if c.opened {
		return c.fail(errors.New("the kernel opened a second window"))
	}
	c.opened = true
	w := &c.window
	w.call, w.lo, w.hi = c, 0, c.bytes
	ep := c.comm.ep
	switch {
	case c.payload:
		w.mode = fromPayloads
	case c.comm.memory != nil:
		w.mode = fromMemory
		c.clock++
	default:
		c.clock++
		return c.fail(c.stagedView(w, ep.Staging(), f))
	}
	return c.fail(f(w))
}

// stagedView shows copies of the inputs, piece by piece. What ranks have folded of
// one piece they share with the staging of the next.
func (c *Call) stagedView(w *View, s transport.Staging, f func(*View) error) error {
	w.mode = fromStaging
	longest, step := w.hi, s.PieceBytes()
	if !c.comm.entry.Staged {
		c.putInput(s, 0)
	}
	for lo := 0; lo < longest; lo += step {
		if err := s.Flip(); err != nil {
			return err
		}
		if lo > 0 && c.reducesToAll() {
			c.takeResults(s, lo-step)
		}
		w.lo, w.hi = lo, min(lo+step, longest)
		w.resultLo, w.resultHi = 0, 0
		if err := f(w); err != nil {
			return err
		}
		if w.resultLo < w.resultHi {
			s.PutResult(w.resultLo, w.results()[w.resultLo:w.resultHi])
		}
		if lo+step < longest {
			c.putInput(s, lo+step)
		}
	}
	if !c.reducesToAll() {
		return nil
	}
	if err := s.Flip(); err != nil {
		return err
	}
	c.takeResults(s, (longest-1)/step*step)
	return nil
}

// putInput stages the piece of this rank's input that begins at a byte.
func (c *Call) putInput(s transport.Staging, lo int) {
	hi := min(lo+s.PieceBytes(), c.bytes)
	var own Range // which no other rank looks at
	if c.plan.choice.Kernel.ReadsOwnPart {
		own = c.own(lo, hi)
	}
	s.PutInput(c.in.data[min(lo, len(c.in.data)):min(hi, len(c.in.data))], own.Lo<<c.out.shift, own.Hi<<c.out.shift)
}

// takeResults takes what the other ranks have folded of the piece that begins at a byte.
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

// reducesToAll reports whether windows of the call have ReduceToAll.
func (c *Call) reducesToAll() bool { return c.coll == CollAllReduce || c.coll == CollReduce }

// own returns the part of the piece of bytes lo to hi that only this rank looks at, of
// all inputs.
func (c *Call) own(lo, hi int) Range {
	if c.coll != CollReduceScatter {
		return c.part(hi - lo)
	}
	at := c.InRange(c.rank, c.rank)
	from, to := max(at.Lo<<c.out.shift, lo), min(at.Hi<<c.out.shift, hi)
	if from >= to {
		return Range{}
	}
	return Range{(from - lo) >> c.out.shift, (to - lo) >> c.out.shift}
}

// results returns where the fold of a piece that is staged goes.
func (w *View) results() []byte {
	c := w.call
	if len(c.out.data) > 0 {
		return c.out.data[w.lo:w.hi]
	}
	return w.spare.bytes(w.hi - w.lo)
}

// inputBytes returns the length of rank's input.
func (c *Call) inputBytes(rank int) int {
	switch c.plan.shape.Collective {
	case CollAllGather, CollGather:
		return c.BlockLen(rank) << c.out.shift
	case CollBroadcast, CollScatter:
		if rank != c.root {
			return 0
		}
	case CollAllToAll:
		return c.InRange(rank, c.Size()-1).Hi << c.out.shift
	}
	return c.plan.shape.Bytes
}

// Input returns rank's input, as far as it lies in the piece. It is not to be
// written. Reading it does not count as traffic.
func (w *View) Input(rank int) Buffer {
	return Buffer{data: w.input(rank), shift: w.call.out.shift}
}

// input returns rank's input, as far as it lies in the piece.
func (w *View) input(rank int) []byte {
	c := w.call
	n := c.inputBytes(rank)
	lo, hi := min(w.lo, n), min(w.hi, n)
	switch {
	case w.mode == fromPayloads: // of this rank, too: another may have written its output there since
		return c.comm.ep.Payload(rank, n)
	case rank == c.rank:
		return c.in.data[lo:hi] // and not a copy, which may not be in this core's caches
	}
	switch w.mode {
	case fromMemory:
		send, _ := c.comm.memory.Buffers(rank)
		return shown(rank, send, n)[:n]
	default:
		return c.comm.ep.Staging().Input(rank, hi-lo)
	}
}

// shown returns a buffer of rank, of which the call needs n bytes. Where ranks are processes
// its length is in memory that they share.
func shown(rank int, b []byte, n int) []byte {
	if len(b) < n {
		panic(&ProtocolError{Peer: rank, Text: fmt.Sprintf("it shows a buffer of %d bytes where this rank expects %d", len(b), n)})
	}
	return b
}

// Offset returns where the piece begins in the inputs, in elements.
func (w *View) Offset() int { return w.lo >> w.call.out.shift }

// Len returns the length of the piece, in elements: that of the longest input in
// it.
func (w *View) Len() int { return (w.hi - w.lo) >> w.call.out.shift }

// partAlign is what shares begin at multiples of, so that no two ranks store to
// one cache line of an aligned buffer.
const partAlign = 64

// Mine returns the part of the piece that this execution is to fold: the parts
// of all ranks make up the piece. It may be empty, and it is all of it where every
// rank folds for itself.
func (w *View) Mine() Range {
	c := w.call
	n := w.hi - w.lo
	if w.mode == fromPayloads || w.mode == fromStaging && (c.coll == CollScan || c.coll == CollExScan) {
		return Range{0, n >> c.out.shift}
	}
	return c.part(n)
}

// part returns this rank's share of a piece of n bytes.
func (c *Call) part(n int) Range {
	lo, hi := BlockRange((n+partAlign-1)/partAlign, c.Rank(), c.Size())
	return Range{min(lo*partAlign, n) >> c.out.shift, min(hi*partAlign, n) >> c.out.shift}
}

// ReduceToAll folds the range of all ranks' inputs in rank order, ((x0 op x1) op
// x2) ..., in one pass, applies the operation's epilogue, and stores the result
// to the same place of all ranks' outputs, or of the root's, where no other rank has
// one. It is for all-reduces and reduces. Every rank reduces its part (Mine), at once or in
// ranges that follow each other.
func (w *View) ReduceToAll(part Range) error {
	c := w.call
	if !c.reducesToAll() {
		return c.fail(fmt.Errorf("the kernel calls ReduceToAll, which all-reduces and reduces have, in a call of %s", c.coll))
	}
	lo, hi, err := w.bytes(part)
	if err != nil || lo == hi || w.mode == fromPayloads && len(c.out.data) == 0 {
		return err
	}
	f := &c.reducer
	f.reset()
	for r := range c.Size() {
		f.from(w.input(r)[lo:hi])
	}
	switch w.mode {
	case fromPayloads:
		f.to(c.out.data[lo:hi])
	case fromMemory:
		for r := range c.Size() {
			if _, recv := c.comm.memory.Buffers(r); len(recv) > 0 {
				f.to(shown(r, recv, hi)[lo:hi])
			}
		}
	case fromStaging:
		f.to(w.results()[lo:hi])
		switch {
		case w.resultLo == w.resultHi:
			w.resultLo, w.resultHi = lo, hi
		case lo == w.resultHi:
			w.resultHi = hi
		default:
			return c.fail(errors.New("the kernel folds blocks of one piece that do not follow each other"))
		}
	}
	switch {
	case w.mode == fromPayloads:
	case c.coll == CollReduce:
		c.moved += c.Size() * (hi - lo) // the root's own store is taken for one to another
	default:
		c.moved += 2 * (c.Size() - 1) * (hi - lo)
	}
	return w.reduced(f.many(hi-lo, w.watched()))
}

// Reduce reduces dst.Len elements of all ranks' inputs, from element `at` on, in rank
// order, applies the operation's epilogue, and stores the result to dst, a buffer of
// this rank: as much of it as lies in the piece.
func (w *View) Reduce(dst Buffer, at int) error {
	c := w.call
	lo, hi := w.clip(at, dst)
	if lo >= hi {
		return nil
	}
	f := &c.reducer
	f.reset()
	for r := range c.Size() {
		f.from(w.input(r)[lo-w.lo : hi-w.lo])
	}
	from := at << c.out.shift
	f.to(dst.data[lo-from : hi-from])
	if w.mode != fromPayloads {
		c.moved += (c.Size() - 1) * (hi - lo)
	}
	return w.reduced(f.many(hi-lo, w.watched()))
}

// ScanToAll folds the range of all ranks' inputs in rank order and stores to the same
// place of every rank's output what has come together by then: in a scan with that
// rank's own input, in an exclusive scan without, and nothing on rank 0. Every rank
// does its part (Mine).
func (w *View) ScanToAll(part Range) error {
	c := w.call
	lo, hi, err := w.bytes(part)
	if err != nil || lo == hi {
		return err
	}
	f := &c.reducer
	f.reset()
	exclusive := c.coll == CollExScan
	if w.mode != fromMemory { // for this rank alone
		last := c.rank + 1
		if exclusive {
			last--
		}
		if last == 0 {
			return nil
		}
		for r := range last {
			f.from(w.input(r)[lo:hi])
		}
		f.to(c.out.data[w.lo+lo : w.lo+hi])
		if w.mode == fromStaging {
			c.moved += c.rank * (hi - lo)
		}
		return w.reduced(f.many(hi-lo, w.watched()))
	}
	for r := range c.Size() {
		_, recv := c.comm.memory.Buffers(r)
		f.from(w.input(r)[lo:hi])
		f.to(shown(r, recv, hi)[lo:hi])
	}
	c.moved += 2 * (c.Size() - 1) * (hi - lo)
	return w.reduced(f.scan(hi-lo, exclusive, w.watched()))
}

// bytes returns a range of the piece in bytes.
func (w *View) bytes(part Range) (lo, hi int, err error) {
	c := w.call
	lo, hi = part.Lo<<c.out.shift, part.Hi<<c.out.shift
	if lo < 0 || lo > hi || hi > w.hi-w.lo {
		return 0, 0, c.fail(errors.New("the kernel folds a block outside of the window's piece"))
	}
	return lo, hi, nil
}

// clip returns which bytes of the inputs lie both in the piece and in the part that
// begins at an element and is as long as dst.
func (w *View) clip(at int, dst Buffer) (lo, hi int) {
	from := at << w.call.out.shift
	return max(from, w.lo), min(from+len(dst.data), w.hi)
}

// watched returns what tells a fold of this window that the group has failed: the
// endpoint if it touches memory of other ranks, nil if all it needs is in copies (rule
// copiesSuffice).
func (w *View) watched() transport.Endpoint {
	if w.mode == fromMemory {
		return w.call.comm.ep
	}
	return nil
}

// reduced is how a verb ends that folds, unless the group failed in between.
func (w *View) reduced(ok bool) error {
	if !ok {
		return w.call.fail(transport.ErrFailed)
	}
	return nil
}

// Copy copies rank's input, as far as it lies in the piece, to its place in dst,
// which is as long as the whole input.
func (w *View) Copy(dst Buffer, rank int) error {
	c := w.call
	if len(dst.data) != c.inputBytes(rank) {
		return c.fail(errors.New("the kernel copies an input to a buffer of another length"))
	}
	return w.CopyPart(dst, rank, 0)
}

// CopyPart copies dst.Len elements of rank's input, from element `at` on, to dst: as
// many as lie in the piece.
func (w *View) CopyPart(dst Buffer, rank, at int) error {
	c := w.call
	lo, hi := w.clip(at, dst)
	if lo >= hi {
		return nil
	}
	src := w.input(rank)
	if hi-w.lo > len(src) {
		return c.fail(errors.New("the kernel copies more than there is of an input"))
	}
	from := at << c.out.shift
	into, src := dst.data[lo-from:hi-from], src[lo-w.lo:hi-w.lo]
	if same(into, src) {
		return nil
	}
	if rank != c.Rank() && w.mode != fromPayloads {
		c.moved += len(src)
	}
	return w.reduced(c.reducer.copy(into, src, c.plan.work, w.watched()))
}
