package ccltest

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// The kernels that mutants are made of. fault says where one of them goes wrong;
// without a fault they are right.

type fault string

const (
	none        fault = ""
	wrongBlock  fault = "sends the wrong block"
	oneStep     fault = "is one step short"
	noFinish    fault = "forgets Finish"
	twoFinishes fault = "calls Finish twice"
	sendFirst   fault = "sends before it receives, on all ranks"
	early       fault = "returns early on one rank"
	ownOutput   fault = "takes its output for its input"
	firstPiece  fault = "folds the first piece only"
	rootZero    fault = "takes rank 0 for the root"
)

// ringReduce is an all-reduce around a ring.
func ringReduce(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		n := c.Size()
		ring := topology.NewRing(n, c.Rank())
		in, out := c.In(), c.Out()
		if f == early && c.Rank() == 1 {
			return nil
		}
		steps := n - 1
		if f == oneStep {
			steps--
		}
		have := in
		if f == ownOutput {
			have, in = out, out
		}
		for s := range steps {
			send, recv := ring.Block(-s), ring.Block(-s-1)
			if f == sendFirst {
				if err := c.Send(ring.Next, have.Block(send, n)); err != nil {
					return err
				}
				if err := c.RecvReduce(ring.Prev, out.Block(recv, n), in.Block(recv, n)); err != nil {
					return err
				}
			} else if err := c.SendRecvReduce(ring.Next, have.Block(send, n), ring.Prev, out.Block(recv, n), in.Block(recv, n)); err != nil {
				return err
			}
			have = out
		}
		mine := out.Block(ring.Block(1), n)
		if f != noFinish {
			c.Finish(mine)
		}
		if f == twoFinishes {
			c.Finish(mine)
		}
		for s := range n - 1 {
			send, recv := ring.Block(1-s), ring.Block(-s)
			if f == wrongBlock {
				send, recv = ring.Block(-s), ring.Block(-s-1)
			}
			if err := c.SendRecv(ring.Next, out.Block(send, n), ring.Prev, out.Block(recv, n)); err != nil {
				return err
			}
		}
		return nil
	}
}

func ringReduceCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: 2 * (s.Ranks - 1), Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

// foldReduce is an all-reduce through a window.
func foldReduce(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		return c.Window(func(w *ccl.Window) error {
			if f == firstPiece && w.Offset() > 0 {
				return nil
			}
			return w.FoldToAll(w.Share())
		})
	}
}

func foldReduceCost(s ccl.Shape) ccl.Cost {
	if s.Eager {
		return ccl.Cost{}
	}
	return ccl.Cost{Steps: 1, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

// ringGather is an all-gather around a ring.
func ringGather(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	if err := c.Copy(c.OutOf(c.Rank()), c.In()); err != nil {
		return err
	}
	for s := range c.Size() - 1 {
		if err := c.SendRecv(ring.Next, c.OutOf(ring.Block(-s)), ring.Prev, c.OutOf(ring.Block(-s-1))); err != nil {
			return err
		}
	}
	return nil
}

func ringGatherCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Total}
}

// chain is a broadcast from each rank to the next.
func chain(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		root := c.Root()
		if f == rootZero {
			root = 0
		}
		ring := topology.NewRing(c.Size(), c.Rank())
		if c.Rank() != root {
			if err := c.Recv(ring.Prev, c.Out()); err != nil {
				return err
			}
		}
		if ring.Next == root {
			return nil
		}
		return c.Send(ring.Next, c.Out())
	}
}

func chainCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Bytes}
}

func ringReduceKernel(f fault) *ccl.Kernel {
	return &ccl.Kernel{Doc: "around a ring", Cost: ringReduceCost, Run: ringReduce(f)}
}

func foldReduceKernel(f fault) *ccl.Kernel {
	return &ccl.Kernel{Doc: "through a window", Cost: foldReduceCost, Run: foldReduce(f), Eager: true, Shared: true}
}

func ringGatherKernel() *ccl.Kernel {
	return &ccl.Kernel{Doc: "around a ring", Cost: ringGatherCost, Run: ringGather}
}

func chainKernel(f fault) *ccl.Kernel {
	return &ccl.Kernel{Doc: "along a chain", Cost: chainCost, Run: chain(f)}
}
