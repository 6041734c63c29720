package tree

import (
	"fmt"
	"math/bits"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// allToAll moves a block that has j ranks to go by the bits of j, the lowest first:
// in round d = 1, 2, 4, ... every rank sends to the rank d places on, in one message,
// the blocks that it has with that bit in j.
func allToAll(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	longest := longestBlock(c)
	half := c.Size() / 2 * longest // the longest message of a round
	spare := c.Scratch(2*half + c.Size()*longest)
	slots := spare.Slice(2*half, spare.Len())
	if err := c.Copy(c.OutBlock(c.Rank()), c.InBlock(c.Rank())); err != nil {
		return err
	}
	for d := 1; d < c.Size(); d *= 2 {
		sent, got := 0, 0
		for j := d; j < c.Size(); j = (j + 1) | d { // all j with that bit
			block := onTheWay(c, ring, slots, j, d)
			if err := c.Copy(spare.Slice(sent, sent+block.Len()), block); err != nil {
				return err
			}
			sent += block.Len()
			got += onTheWay(c, ring, slots, j, 2*d).Len()
		}
		message := spare.Slice(half, half+got)
		if err := c.SendRecv(ring.Block(d), spare.Slice(0, sent), ring.Block(-d), message); err != nil {
			return fmt.Errorf("distance %d: %w", d, err)
		}

		for j, at := d, 0; j < c.Size(); j = (j + 1) | d {
			block := onTheWay(c, ring, slots, j, 2*d)
			if err := c.Copy(block, message.Slice(at, at+block.Len())); err != nil {
				return err
			}
			at += block.Len()
		}
	}
	return nil
}

// onTheWay returns where this rank has, before round d, the block that had j ranks to go
// at first: in its input if it has not moved yet, in its output if it has arrived, else in
// a slot.
func onTheWay(c *ccl.Call, ring topology.Ring, slots ccl.Buffer, j, d int) ccl.Buffer {
	gone := j & (d - 1)
	switch gone {
	case 0:
		return c.InBlock(ring.Block(j))
	case j:
		return c.OutBlock(ring.Block(-j))
	}
	block := c.InRange(ring.Block(-gone), ring.Block(j-gone))
	return slots.Block(j, c.Size()).Slice(0, block.Hi-block.Lo)
}

func longestBlock(c *ccl.Call) int {
	longest := 0
	for from := range c.Size() {
		for to := range c.Size() {
			block := c.InRange(from, to)
			longest = max(longest, block.Hi-block.Lo)
		}
	}
	return longest
}

// allToAllCost: every rank sends a block for each bit of each j.
func allToAllCost(s ccl.Shape) ccl.Cost {
	set := 0
	for j := range s.Ranks {
		set += bits.OnesCount(uint(j))
	}
	return ccl.Cost{Steps: rounds(s.Ranks), Bytes: set * s.Bytes}
}
