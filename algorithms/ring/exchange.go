package ring

import (
	"fmt"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func allGather(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	if err := c.Copy(c.OutBlock(c.Rank()), c.In()); err != nil {
		return err
	}
	return steps.AllGather(c, ring, 0, c.OutBlock)
}

func allGatherCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Total}
}

func allToAll(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	if err := c.Copy(c.OutBlock(c.Rank()), c.InBlock(c.Rank())); err != nil {
		return err
	}
	for s := 1; s < c.Size(); s++ {
		to, from := ring.Block(s), ring.Block(-s)
		if err := c.SendRecv(to, c.InBlock(to), from, c.OutBlock(from)); err != nil {
			return fmt.Errorf("step %d: %w", s, err)
		}
	}
	return nil
}

// allToAllCost: of its R blocks every rank keeps one.
func allToAllCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Bytes}
}
