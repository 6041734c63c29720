package grid

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// meshSteps: a row's reduction ends before the column's begins, and so on; the last
// of n chunks leaves one end of a line after n steps and takes k-2 more to the
// other, k ranks away.
func meshSteps(s ccl.Shape) int {
	line := func(k int) int {
		if k == 1 {
			return 0
		}
		return pieces(s, 1) + k - 2
	}
	return 2*line(s.Topology.W()) + 2*line(s.Topology.H())
}

func onMesh(c *ccl.Call) error {
	near := c.Topology().Neighbors(c.Rank())
	east, west := near[topology.East], near[topology.West]
	north, south := near[topology.North], near[topology.South]
	out, n := c.Out(), pieces(c.Shape(), 1)

	sum, err := reduce(c, east, west, c.In(), out, n)
	if err != nil {
		return fmt.Errorf("row: %w", err)
	}
	if west == topology.None { // the first column
		if _, err := reduce(c, south, north, sum, out, n); err != nil {
			return fmt.Errorf("column: %w", err)
		}
		if north == topology.None { // the corner
			c.Epilogue(out)
		}
		if err := broadcast(c, north, south, out, n); err != nil {
			return fmt.Errorf("column: %w", err)
		}
	}
	if err := broadcast(c, west, east, out, n); err != nil {
		return fmt.Errorf("row: %w", err)
	}
	return nil
}

// reduce is one rank's part in a pipeline of n chunks that folds the inputs along a
// line: what comes from one side goes on to the other, with this rank's input added.
// None stands for the side beyond an end. It returns where the fold is: in out, or
// in in where nothing comes.
func reduce(c *ccl.Call, from, to int, in, out ccl.Buffer, n int) (ccl.Buffer, error) {
	sum := out
	if from == topology.None {
		sum = in
	}
	for i := range n + 1 {
		var err error
		switch recv, send := from != topology.None && i < n, to != topology.None && i > 0; {
		case recv && send:
			err = c.SendRecvReduce(to, sum.Block(i-1, n), from, sum.Block(i, n), in.Block(i, n))
		case recv:
			err = c.RecvReduce(from, sum.Block(i, n), in.Block(i, n))
		case send:
			err = c.Send(to, sum.Block(i-1, n))
		}
		if err != nil {
			return ccl.Buffer{}, fmt.Errorf("reduce, chunk %d: %w", i, err)
		}
	}
	return sum, nil
}

// broadcast is one rank's part in a pipeline of n chunks that passes buf on along a
// line.
func broadcast(c *ccl.Call, from, to int, buf ccl.Buffer, n int) error {
	for i := range n + 1 {
		var err error
		switch recv, send := from != topology.None && i < n, to != topology.None && i > 0; {
		case recv && send:
			err = c.SendRecv(to, buf.Block(i-1, n), from, buf.Block(i, n))
		case recv:
			err = c.Recv(from, buf.Block(i, n))
		case send:
			err = c.Send(to, buf.Block(i-1, n))
		}
		if err != nil {
			return fmt.Errorf("broadcast, chunk %d: %w", i, err)
		}
	}
	return nil
}
