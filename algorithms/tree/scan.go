package tree

import (
	"fmt"
	"math/bits"

	"github.com/goccl/goccl/ccl"
)

func scan(c *ccl.Call) error {
	n := ccl.ParamsOf[Params](c).chunks(c.Shape().Bytes)
	spare := c.Scratch(c.In().Block(0, n).Len())
	for i := range n {
		in, out := c.In().Block(i, n), c.Out().Block(i, n)
		folded, err := foldBefore(c, 0, in, spare.Slice(0, in.Len()), out) // out may be in: it comes last
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
		if err := c.Copy(out, folded); err != nil {
			return err
		}
	}
	return nil
}

// exScan moves every input one rank on, and scans there: a rank can fold what it
// receives once, and so either with its own input, for the ranks behind it, or with
// that of the rank before, for itself.
func exScan(c *ccl.Call) error {
	n := ccl.ParamsOf[Params](c).chunks(c.Shape().Bytes)
	spare := c.Scratch(c.In().Block(0, n).Len())
	for i := range n {
		in, out := c.In().Block(i, n), c.Out().Block(i, n)
		if err := exScanChunk(c, in, out, spare.Slice(0, in.Len())); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

func exScanChunk(c *ccl.Call, in, out, before ccl.Buffer) error {
	var err error
	switch me := c.Rank(); me {
	case 0:
		return c.Send(1, in)
	case c.Size() - 1:
		err = c.Recv(me-1, before)
	default:
		err = c.SendRecv(me+1, in, me-1, before)
	}
	if err != nil {
		return err
	}
	folded, err := foldBefore(c, 1, before, out, before)
	if err != nil {
		return err
	}
	return c.Copy(out, folded)
}

// foldBefore returns the fold of what the ranks from first to this one have. After
// the round of distance d it is that of 2d ranks, or of as many as there are. It goes
// to next and to spare in turns.
func foldBefore(c *ccl.Call, first int, have, next, spare ccl.Buffer) (ccl.Buffer, error) {
	for d := 1; first+d < c.Size(); d *= 2 {
		to, from := c.Rank()+d, c.Rank()-d
		var err error
		switch {
		case to < c.Size() && from >= first:
			err = c.SendRecvReduce(to, have, from, next, have)
		case to < c.Size():
			err = c.Send(to, have)
		case from >= first:
			err = c.RecvReduce(from, next, have)
		}
		if err != nil {
			return have, fmt.Errorf("distance %d: %w", d, err)
		}
		if from >= first {
			have, next, spare = next, spare, next
		}
	}
	return have, nil
}

// rounds returns how many distances 1, 2, 4, ... there are between so many ranks.
func rounds(ranks int) int { return bits.Len(uint(ranks - 1)) }

// scanSends returns how many vectors ranks send in a scan: at distance d all but d.
func scanSends(ranks int) int {
	n := 0
	for d := 1; d < ranks; d *= 2 {
		n += ranks - d
	}
	return n
}

// scanCost: rank 0 sends in every round of every chunk.
func scanCost(s ccl.Shape) ccl.Cost {
	n := s.Params.(*Params).chunks(s.Bytes)
	return ccl.Cost{Steps: n * rounds(s.Ranks), Bytes: scanSends(s.Ranks) * s.Bytes}
}

// exScanCost: every chunk moves on, and is scanned by all ranks but rank 0.
func exScanCost(s ccl.Shape) ccl.Cost {
	n, scanned := s.Params.(*Params).chunks(s.Bytes), s.Ranks-1
	return ccl.Cost{Steps: n * (1 + rounds(scanned)), Bytes: (scanned + scanSends(scanned)) * s.Bytes}
}
