package grid

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// parts returns in how many parts a vector goes around a torus: each is cut into
// as many blocks as a row has ranks.
func parts(s ccl.Shape) int { return pieces(s, s.Topology.W()) }

// torusSteps: both phases of a ring take one step less than it has ranks.
func torusSteps(s ccl.Shape) int {
	return parts(s) * (2*(s.Topology.W()-1) + 2*(s.Topology.H()-1))
}

func onTorus(c *ccl.Call) error {
	n := parts(c.Shape())
	for i := range n {
		if err := torusPart(c, c.In().Block(i, n), c.Out().Block(i, n)); err != nil {
			return err
		}
	}
	return nil
}

func torusPart(c *ccl.Call, in, out ccl.Buffer) error {
	// The rings of this rank's row and column: Rank and blocks count positions in
	// them, Next and Prev are ranks of the group.
	grid, near := c.Topology(), c.Topology().Neighbors(c.Rank())
	x, y := grid.Coord(c.Rank())
	row := topology.Ring{Size: grid.W(), Rank: x, Next: near[topology.East], Prev: near[topology.West]}
	column := topology.Ring{Size: grid.H(), Rank: y, Next: near[topology.South], Prev: near[topology.North]}
	block := out.Block(row.Block(1), row.Size) // the same in all ranks of the column

	sum, err := reduceScatter(c, row, in, out)
	if err != nil {
		return fmt.Errorf("row: %w", err)
	}
	sum, err = reduceScatter(c, column, sum, block)
	if err != nil {
		return fmt.Errorf("column: %w", err)
	}
	c.Epilogue(sum)
	if err := allGather(c, column, block); err != nil {
		return fmt.Errorf("column: %w", err)
	}
	if err := allGather(c, row, out); err != nil {
		return fmt.Errorf("row: %w", err)
	}
	return nil
}

// reduceScatter leaves block 1 of the ring's fold in out, and returns it: in a ring
// of one it is what came in.
func reduceScatter(c *ccl.Call, ring topology.Ring, in, out ccl.Buffer) (ccl.Buffer, error) {
	n, have := ring.Size, in
	for s := range n - 1 {
		send, recv := ring.Block(-s), ring.Block(-s-1)
		err := c.SendRecvReduce(ring.Next, have.Block(send, n), ring.Prev, out.Block(recv, n), in.Block(recv, n))
		if err != nil {
			return ccl.Buffer{}, fmt.Errorf("reduce-scatter, step %d: %w", s, err)
		}
		have = out
	}
	return have.Block(ring.Block(1), n), nil
}

// allGather passes on the blocks that reduceScatter left, until all ranks of the
// ring have them all.
func allGather(c *ccl.Call, ring topology.Ring, out ccl.Buffer) error {
	n := ring.Size
	for s := range n - 1 {
		send, recv := ring.Block(1-s), ring.Block(-s)
		if err := c.SendRecv(ring.Next, out.Block(send, n), ring.Prev, out.Block(recv, n)); err != nil {
			return fmt.Errorf("all-gather, step %d: %w", s, err)
		}
	}
	return nil
}
