package steps

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// SendRecv sends b to rank `to` and receives dst from rank `from` at the same time. If to is
// topology.None it does not send; if from is, it does not receive.
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

// Chain is one rank's part of a pipeline along a chain of ranks: the rank receives chunk i of
// n from rank `from` while it sends chunk i-1 to rank `to`. The first rank of the chain passes
// topology.None as from, the last one as to. With a nil input the rank forwards what it
// receives; otherwise it forwards (input op received).
//
// chunk returns the memory of chunk i, where it is received and from where it is sent. On a
// rank that does both, chunks i and i+1 must be in different memory.
func Chain(c *ccl.Call, from, to, n int, chunk, input func(i, n int) ccl.Buffer) error {
	for i := range n + 1 {
		if err := ChainStep(c, from, to, i, n, chunk, input); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

// TwoChunks returns the memory of chunks of a vector as long as the input: by turns the two
// halves of spare, each as long as the longest chunk.
func TwoChunks(c *ccl.Call, spare ccl.Buffer) func(i, n int) ccl.Buffer {
	return func(i, n int) ccl.Buffer {
		return spare.Block(i%2, 2).Slice(0, c.In().Block(i, n).Len())
	}
}

// ChainStep is step i of Chain, 0 <= i <= n, for kernels that interleave several chains.
func ChainStep(c *ccl.Call, from, to, i, n int, chunk, input func(i, n int) ccl.Buffer) error {
	sending, receiving := i > 0 && to != topology.None, i < n && from != topology.None

	switch {
	case sending && receiving && input != nil:
		return c.SendRecvReduce(to, chunk(i-1, n), from, chunk(i, n), input(i, n))
	case sending && receiving: // nothing is reduced
		return c.SendRecv(to, chunk(i-1, n), from, chunk(i, n))
	case sending:
		return c.Send(to, chunk(i-1, n))
	case receiving && input != nil:
		return c.RecvReduce(from, chunk(i, n), input(i, n))
	case receiving:
		return c.Recv(from, chunk(i, n))
	}
	return nil
}
