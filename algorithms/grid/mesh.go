package grid

import (
	"fmt"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// meshSteps: the reduction along a row ends before the one along the column begins, and so on. In
// a line of k ranks the last of n chunks leaves one end after n steps and reaches the
// other k-2 steps later.
func meshSteps(s ccl.Shape) int {
	line := func(k int) int {
		if k == 1 {
			return 0
		}
		return parts(s, 1) + k - 2
	}
	return 2*line(s.Topology.W()) + 2*line(s.Topology.H())
}

func onMesh(c *ccl.Call) error {
	near := c.Shape().Topology.Neighbors(c.Rank())
	east, west := near[topology.East], near[topology.West]
	north, south := near[topology.North], near[topology.South]
	in, out, n := c.In().Block, c.Out().Block, parts(c.Shape(), 1)

	sum := out
	if east == topology.None { // this end of the row receives nothing
		sum = in
	}
	if err := steps.Chain(c, east, west, n, sum, in); err != nil {
		return fmt.Errorf("row, reduce: %w", err)
	}
	if west == topology.None { // the first column
		row := sum
		if south != topology.None {
			sum = out
		}
		if err := steps.Chain(c, south, north, n, sum, row); err != nil {
			return fmt.Errorf("column, reduce: %w", err)
		}
		if north == topology.None { // the corner
			c.Epilogue(c.Out())
		}
		if err := steps.Chain(c, north, south, n, out, nil); err != nil {
			return fmt.Errorf("column, broadcast: %w", err)
		}
	}
	if err := steps.Chain(c, west, east, n, out, nil); err != nil {
		return fmt.Errorf("row, broadcast: %w", err)
	}
	return nil
}
