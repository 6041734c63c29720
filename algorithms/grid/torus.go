package grid

import (
	"fmt"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// torusParts: each part is cut into one block for each rank of a row.
func torusParts(s ccl.Shape) int { return parts(s, s.Topology.W()) }

// torusSteps: both phases of a ring take one step less than it has ranks.
func torusSteps(s ccl.Shape) int {
	return torusParts(s) * (2*(s.Topology.W()-1) + 2*(s.Topology.H()-1))
}

func onTorus(c *ccl.Call) error {
	n := torusParts(c.Shape())
	for i := range n {
		if err := torusPart(c, c.In().Block(i, n), c.Out().Block(i, n)); err != nil {
			return err
		}
	}
	return nil
}

func torusPart(c *ccl.Call, in, out ccl.Buffer) error {
	// The rings of this rank's row and column. Rank and blocks are positions in the ring;
	// Next and Prev are ranks of the group.
	grid, near := c.Shape().Topology, c.Shape().Topology.Neighbors(c.Rank())
	x, y := grid.Coord(c.Rank())
	row := topology.Ring{Size: grid.W(), Rank: x, Next: near[topology.East], Prev: near[topology.West]}
	column := topology.Ring{Size: grid.H(), Rank: y, Next: near[topology.South], Prev: near[topology.North]}
	block := out.Block(row.Block(1), row.Size) // the same block on all ranks of the column

	sum, err := steps.ReduceScatter(c, row, in, out)
	if err != nil {
		return fmt.Errorf("row: %w", err)
	}
	sum, err = steps.ReduceScatter(c, column, sum, block)
	if err != nil {
		return fmt.Errorf("column: %w", err)
	}

	c.Epilogue(sum)
	if err := steps.AllGather(c, column, 1, func(i int) ccl.Buffer { return block.Block(i, column.Size) }); err != nil {
		return fmt.Errorf("column: %w", err)
	}
	if err := steps.AllGather(c, row, 1, func(i int) ccl.Buffer { return out.Block(i, row.Size) }); err != nil {
		return fmt.Errorf("row: %w", err)
	}
	return nil
}
