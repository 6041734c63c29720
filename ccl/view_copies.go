package ccl

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/transport"
)

// copies are inputs that the transport copies, piece by piece. Each rank reduces a part of a piece
// and publishes its result together with its input of the next piece.
type copies struct{}

func (copies) input(v *View, rank int) []byte {
	c := v.call
	n := c.inputBytes(rank)
	lo, hi := min(v.lo, n), min(v.hi, n)
	if rank == c.rank {
		return c.in.data[lo:hi] // and not a copy, which may not be in this core's caches
	}
	return c.engine.ep.Staging().Input(rank, hi-lo)
}

// reduceToAll stores to this rank's output, and to the copies of other ranks' inputs, from which
// those take the result.
func (copies) reduceToAll(v *View, lo, hi int) error {
	c, s := v.call, v.call.engine.ep.Staging()
	v.fromAll(lo, hi)
	for r := range c.Size() {
		switch {
		case r == c.rank && len(c.out.data) == 0:
		case r == c.rank:
			c.reducer.To(c.out.data[v.lo+lo : v.lo+hi])
		case !collectives[c.coll].rooted || r == c.root:
			c.reducer.To(s.Input(r, hi)[lo:hi])
		}
	}

	switch {
	case v.resultLo == v.resultHi:
		v.resultLo, v.resultHi = lo, hi
	case lo == v.resultHi:
		v.resultHi = hi
	default:
		return c.misuse(errors.New("the kernel reduces ranges of one piece that are not consecutive"))
	}
	return v.finishReduction(hi - lo)
}

func (copies) scanToAll(v *View, lo, hi int) error { return v.scanAlone(lo, hi) }

// showPieces calls f with copies of the inputs, piece by piece.
func (v *View) showPieces(f func(*View) error) error {
	c, s := v.call, v.call.engine.ep.Staging()
	longest, step := v.hi, s.PieceBytes()
	toAll := collectives[c.coll].view == reduceToAll
	if !c.engine.entry.Staged {
		c.putInput(s, 0)
	}
	for lo := 0; lo < longest; lo += step {
		if err := c.flip(s, !toAll && lo+step >= longest); err != nil {
			return err
		}
		if lo > 0 && toAll {
			c.takeResults(s, lo-step) // before putInput replaces them (rule takeBeforeCopy)
		}
		v.lo, v.hi = lo, min(lo+step, longest)
		v.resultLo, v.resultHi = 0, 0
		if v.part = v.whole(); collectives[c.coll].view != scanToAll {
			v.part = c.part(v.hi - v.lo)
		}
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
	if err := c.flip(s, true); err != nil {
		return err
	}
	c.takeResults(s, (longest-1)/step*step)
	return nil
}

// flip flips. If the call ends with its last Flip, other ranks succeed as soon as all have arrived
// there; so does a rank that has given up its own wait.
func (c *Call) flip(s transport.Staging, isLast bool) error {
	err := s.Flip()
	if e := c.engine; err != nil && isLast && !e.entry.Exposed {
		if !errors.Is(err, transport.ErrFailed) {
			e.fail(err)
		}
		if s.ResolveFlip() {
			return nil
		}
	}
	return err
}

// putInput puts the piece of this rank's input that starts at byte lo.
func (c *Call) putInput(s transport.Staging, lo int) {
	hi := min(lo+s.PieceBytes(), c.bytes)
	piece := c.in.data[min(lo, len(c.in.data)):min(hi, len(c.in.data))]
	switch {
	case !c.plan.choice.Kernel.ReadsOwnPart || !collectives[c.coll].parted:
		s.PutInput(piece, 0, 0)
	case c.engine.parts != nil:
		c.pieceLo, c.pieceHi = lo, hi
		toAll := collectives[c.coll].view == reduceToAll // results replace what their ranks have got
		c.engine.parts.PutParts(piece, toAll, c.partOfPiece)
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
				panic(&transport.ProtocolError{Peer: r, Text: fmt.Sprintf("it shows results up to byte %d of a piece of %d", hi, len(c.out.data)-at)})
			}
			copy(c.out.data[at+lo:at+hi], result)
		}
	}
}

// partFor returns the bytes of the piece of bytes lo to hi of this rank's input that rank `to`
// reads, relative to the piece, if the kernel reads its own part only.
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
