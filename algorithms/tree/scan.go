package tree

import (
	"fmt"
	"math/bits"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// scan reduces at distances 1, 2, 4, ...: what comes from the rank d before is the left
// operand of what this rank has. After distance d that is the result of 2d ranks, or of
// all before this one if those are fewer.
func scan(c *ccl.Call) error {
	n := ccl.ParamsOf[Params](c).chunks(c.Shape().Bytes)
	spare := c.Scratch(c.In().Block(0, n).Len())

	for i := range n {
		have, out := c.In().Block(i, n), c.Out().Block(i, n)

		err := atDistances(c, &have, spare.Slice(0, have.Len()), func(before ccl.Buffer) error {
			err := c.Reduce(out, before, have)
			have = out
			return err
		})
		if err == nil && c.Rank() == 0 {
			err = c.Copy(out, have)
		}
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}

	return nil
}

// exScan is scan with a second reduction of all that comes. The first begins with this
// rank's input, lies in scratch memory and goes to other ranks; the second is the result.
func exScan(c *ccl.Call) error {
	n := ccl.ParamsOf[Params](c).chunks(c.Shape().Bytes)
	spare := c.Scratch(2 * c.In().Block(0, n).Len())

	for i := range n {
		have, out := c.In().Block(i, n), c.Out().Block(i, n)
		going := spare.Block(1, 2).Slice(0, have.Len())
		first := true
		err := atDistances(c, &have, spare.Block(0, 2).Slice(0, have.Len()), func(before ccl.Buffer) error {
			if err := c.Reduce(going, before, have); err != nil {
				return err
			}
			have = going
			if first {
				first = false
				return c.Copy(out, before) // before may be the input
			}
			return c.Reduce(out, before, out)
		})
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

// atDistances sends, at distances 1, 2, 4, ..., what this rank has then to the rank that
// far behind it, receives into spare what the rank that far before it has, and calls
// reduce with that.
func atDistances(c *ccl.Call, have *ccl.Buffer, spare ccl.Buffer, reduce func(before ccl.Buffer) error) error {
	for d := 1; d < c.Size(); d *= 2 {
		to, from := c.Rank()+d, c.Rank()-d
		if to >= c.Size() {
			to = topology.None
		}
		if from < 0 {
			from = topology.None
		}

		err := steps.SendRecv(c, to, *have, from, spare)
		if err == nil && from != topology.None {
			err = reduce(spare)
		}
		if err != nil {
			return fmt.Errorf("distance %d: %w", d, err)
		}
	}
	return nil
}

// rounds returns the number of distances 1, 2, 4, ... below ranks.
func rounds(ranks int) int { return bits.Len(uint(ranks - 1)) }

// scanSends returns the number of vectors sent in a scan: at distance d all but d ranks
// send one.
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
