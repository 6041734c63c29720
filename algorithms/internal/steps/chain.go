package steps

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// SendRecv sends b to rank `to` and receives dst from rank `from` at the same time. It
// leaves out the half whose rank is topology.None.
func SendRecv(c *ccl.Call, to int, b ccl.Buffer, from int, dst ccl.Buffer) error {
	switch {
	case to != topology.None && from != topology.None:
		return c.SendRecv(to, b, from, dst)
	case to != topology.None:
		return c.Send(to, b)
	case from != topology.None:
		return c.Recv(from, dst)
	}
	return nil
}

// Chain is one rank's part of a pipeline along a chain of ranks: chunk i of n comes in
// from rank `from` while chunk i-1 goes on to rank `to`. topology.None stands for the
// rank beyond an end of the chain. A pipeline with a nil input copies what comes in;
// one with an input reduces it, as (input op received).
//
// have returns where chunk i is received and sent from. Between the ends of the chain it
// must not return the same memory for chunks i and i+1.
func Chain(c *ccl.Call, from, to, n int, have, input func(i, n int) ccl.Buffer) error {
	for i := range n + 1 {
		if err := ChainStep(c, from, to, i, n, have, input); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

// ChainStep is step i, from 0 to n, of Chain.
func ChainStep(c *ccl.Call, from, to, i, n int, have, input func(i, n int) ccl.Buffer) error {
	sending, receiving := i > 0 && to != topology.None, i < n && from != topology.None
	switch {
	case sending && receiving && input != nil:
		return c.SendRecvReduce(to, have(i-1, n), from, have(i, n), input(i, n))
	case sending && receiving:
		return c.SendRecv(to, have(i-1, n), from, have(i, n))
	case sending:
		return c.Send(to, have(i-1, n))
	case receiving && input != nil:
		return c.RecvReduce(from, have(i, n), input(i, n))
	case receiving:
		return c.Recv(from, have(i, n))
	}
	return nil
}
