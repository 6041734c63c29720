package ccl

import (
	"errors"

	"github.com/goccl/goccl/transport"
)

// Window shows the inputs of all ranks, one piece at a time. It is valid inside
// the function that Call.Window calls.
type Window struct {
	call *Call
	mode windowMode
	// The piece is the bytes lo to hi of every buffer that is so long.
	lo, hi int
	// What FoldToAll has folded of a piece that is staged, relative to the piece: it
	// lies in this rank's own output.
	resultLo, resultHi int
}

// windowMode is where a window's inputs come from.
type windowMode uint8

const (
	fromPayloads windowMode = iota // the copies that came with the synchronisation
	fromMemory                     // the ranks' own buffers
	fromStaging                    // copies made piece by piece
)

// Range is a run of elements of a window's piece, from Lo on and before Hi.
type Range struct {
	Lo, Hi int
}

// Window opens the window on all ranks' inputs: it calls f once for each piece of
// them, with the same pieces in the same order on every rank, and returns f's
// first error. There is usually one piece, the inputs themselves; a transport
// that has to copy shows as much as it can hold. What f stores through the window
// has arrived when Window returns on all ranks. A call has one window.
func (c *Call) Window(f func(*Window) error) error {
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
		return c.fail(c.stagedWindow(w, ep.Staging(), f))
	}
	return c.fail(f(w))
}

// stagedWindow shows copies of the inputs, piece by piece.
func (c *Call) stagedWindow(w *Window, s transport.Staging, f func(*Window) error) error {
	w.mode = fromStaging
	longest := w.hi
	step := s.PieceBytes()
	for lo := 0; lo < longest; lo += step {
		w.lo, w.hi = lo, min(lo+step, longest)
		w.resultLo, w.resultHi = 0, 0
		var own Range // which no other rank looks at
		if c.plan.choice.Kernel.Shares {
			own = w.Share()
		}
		piece := c.in.data[min(lo, len(c.in.data)):min(w.hi, len(c.in.data))]
		if err := s.Stage(piece, own.Lo<<c.out.shift, own.Hi<<c.out.shift); err != nil {
			return err
		}
		if err := f(w); err != nil {
			return err
		}
		var mine []byte
		if w.resultLo < w.resultHi {
			mine = c.out.data[w.lo+w.resultLo : w.lo+w.resultHi]
		}
		if err := s.Share(w.resultLo, mine); err != nil {
			return err
		}
		for r := range c.Size() {
			if lo, hi, result := s.Shared(r); lo < hi && r != c.Rank() {
				copy(c.out.data[w.lo+lo:w.lo+hi], result)
			}
		}
	}
	return nil
}

// inputBytes returns the length of rank's input.
func (c *Call) inputBytes(rank int) int {
	switch c.plan.shape.Collective {
	case CollAllGatherV:
		return c.counts[rank] << c.out.shift
	case CollBroadcast:
		if rank != c.root {
			return 0
		}
	}
	return c.plan.shape.Bytes
}

// Of returns rank's input, as far as it lies in the piece. It is not to be
// written. Reading it does not count as traffic.
func (w *Window) Of(rank int) Buffer {
	return Buffer{data: w.of(rank), shift: w.call.out.shift}
}

// of returns rank's input, as far as it lies in the piece.
func (w *Window) of(rank int) []byte {
	c := w.call
	n := c.inputBytes(rank)
	lo, hi := min(w.lo, n), min(w.hi, n)
	if rank == c.rank {
		return c.in.data[lo:hi] // and not a copy, which may not be in this core's caches
	}
	switch w.mode {
	case fromPayloads:
		return c.comm.ep.Payload(rank, n)
	case fromMemory:
		send, _ := c.comm.memory.Buffers(rank)
		return send[:n]
	default:
		return c.comm.ep.Staging().Staged(rank, hi-lo)
	}
}

// Offset returns where the piece begins in the inputs, in elements.
func (w *Window) Offset() int { return w.lo >> w.call.out.shift }

// Len returns the length of the piece, in elements: that of the longest input in
// it.
func (w *Window) Len() int { return (w.hi - w.lo) >> w.call.out.shift }

// shareBytes is what shares begin at multiples of, so that no two ranks store to
// one cache line of an aligned buffer.
const shareBytes = 64

// Share returns the part of the piece that this execution is to fold: the parts
// of all ranks make up the piece. It may be empty, and it is all of it where
// every rank folds for itself.
func (w *Window) Share() Range {
	c := w.call
	n := w.hi - w.lo
	if w.mode == fromPayloads {
		return Range{0, n >> c.out.shift}
	}
	lo, hi := Split((n+shareBytes-1)/shareBytes, c.Rank(), c.Size())
	return Range{min(lo*shareBytes, n) >> c.out.shift, min(hi*shareBytes, n) >> c.out.shift}
}

// FoldToAll folds the range of all ranks' inputs in rank order, ((x0 op x1) op
// x2) ..., in one pass, applies the operation's epilogue, and stores the result
// to the same place of all ranks' outputs. Every rank folds its Share, at once or
// in ranges that follow each other.
func (w *Window) FoldToAll(part Range) error {
	c := w.call
	f := &c.fold
	lo, hi := part.Lo<<c.out.shift, part.Hi<<c.out.shift
	if lo < 0 || lo > hi || hi > w.hi-w.lo {
		return c.fail(errors.New("the kernel folds a block outside of the window's piece"))
	}
	if lo == hi {
		return nil
	}
	f.reset()
	for r := range c.Size() {
		f.from(w.of(r)[lo:hi])
	}
	switch w.mode {
	case fromPayloads:
		f.to(c.out.data[lo:hi])
	case fromMemory:
		for r := range c.Size() {
			_, recv := c.comm.memory.Buffers(r)
			f.to(recv[lo:hi])
		}
		c.moved += 2 * (c.Size() - 1) * (hi - lo)
	case fromStaging:
		f.to(c.out.data[w.lo+lo : w.lo+hi])
		switch {
		case w.resultLo == w.resultHi:
			w.resultLo, w.resultHi = lo, hi
		case lo == w.resultHi:
			w.resultHi = hi
		default:
			return c.fail(errors.New("the kernel folds blocks of one piece that do not follow each other"))
		}
		c.moved += 2 * (c.Size() - 1) * (hi - lo)
	}
	if !f.many(hi-lo, c.comm.ep) {
		return c.fail(transport.ErrFailed)
	}
	return nil
}

// Copy copies rank's input, as far as it lies in the piece, to its place in dst,
// which is as long as the whole input.
func (w *Window) Copy(dst Buffer, rank int) error {
	c := w.call
	src := w.of(rank)
	at := min(w.lo, len(dst.data))
	if len(dst.data) != c.inputBytes(rank) {
		return c.fail(errors.New("the kernel copies an input to a buffer of another length"))
	}
	into := dst.data[at : at+len(src)]
	if same(into, src) {
		return nil
	}
	if rank != c.Rank() && w.mode != fromPayloads {
		c.moved += len(src)
	}
	for len(src) > 0 {
		if c.comm.ep.Failed() {
			return c.fail(transport.ErrFailed)
		}
		n := copy(into, src[:min(len(src), foldBytes)])
		into, src = into[n:], src[n:]
	}
	return nil
}
