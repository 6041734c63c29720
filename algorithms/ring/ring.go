package ring

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func init() { ccl.Register(Algorithm) }

// Params are the parameters of an entry with `module: ring`.
type Params struct {
	// Chunk bounds a message: longer vectors go around the ring in parts, so
	// that a part is still in the cache when it comes round again, and a
	// broadcast has a pipeline. A power of two keeps the parts aligned.
	Chunk ccl.ByteSize `yaml:"chunk" doc:"longest message, in bytes"`
}

// Validate reports a chunk that holds no element.
func (p *Params) Validate() error {
	if p.Chunk < 64 {
		return fmt.Errorf("chunk is %v, want at least 64 bytes", p.Chunk)
	}
	return nil
}

// Algorithm is the algorithm that `module: ring` names; its parameters are
// Params.
var Algorithm = &ccl.Algorithm{
	Name:   "ring",
	Doc:    "neighbours exchange messages around a ring; each rank sends as little as possible, whatever the number of ranks",
	Params: func() any { return &Params{Chunk: 256 << 10} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "reduce-scatter, then all-gather, once around the ring each (Patarasuk and Yuan, 2009)",
			Cost: allReduceCost,
			Run:  allReduce,
		},
		ccl.CollAllGather: {
			Doc:  "every input is passed on around the ring",
			Cost: allGatherVCost,
			Run:  allGatherV,
		},
		ccl.CollBroadcast: {
			Doc:  "a pipeline of chunks along the ring, from the root",
			Cost: broadcastCost,
			Run:  broadcast,
		},
	},
}

// rounds returns in how many parts of at most R chunks a vector goes around.
func rounds(bytes, ranks int, chunk ccl.ByteSize) int {
	return max(1, (bytes+ranks*int(chunk)-1)/(ranks*int(chunk)))
}

func allReduce(c *ccl.Call) error {
	n := rounds(c.Shape().Bytes, c.Size(), ccl.ParamsOf[Params](c).Chunk)
	for i := range n {
		if err := allReducePart(c, c.In().Block(i, n), c.Out().Block(i, n)); err != nil {
			return err
		}
	}
	return nil
}

func allReducePart(c *ccl.Call, in, out ccl.Buffer) error {
	n := c.Size()
	ring := topology.NewRing(n, c.Rank())

	// Reduce-scatter: in step s block -s goes on, and block -s-1 comes in with
	// the fold of s+1 ranks, to which this rank's input is added. After n-1 steps
	// this rank holds block 1 fully reduced.
	have := in
	for s := range n - 1 {
		send, recv := ring.Block(-s), ring.Block(-s-1)
		err := c.SendRecvReduce(ring.Next, have.Block(send, n), ring.Prev, out.Block(recv, n), in.Block(recv, n))
		if err != nil {
			return fmt.Errorf("reduce-scatter, step %d: %w", s, err)
		}
		have = out
	}
	c.Finish(out.Block(ring.Block(1), n))

	// All-gather: pass the reduced blocks on, starting with our own.
	for s := range n - 1 {
		send, recv := ring.Block(1-s), ring.Block(-s)
		if err := c.SendRecv(ring.Next, out.Block(send, n), ring.Prev, out.Block(recv, n)); err != nil {
			return fmt.Errorf("all-gather, step %d: %w", s, err)
		}
	}
	return nil
}

// allReduceCost: each block of each round crosses 2(R-1) links.
func allReduceCost(s ccl.Shape) ccl.Cost {
	n := rounds(s.Bytes, s.Ranks, s.Params.(*Params).Chunk)
	return ccl.Cost{Steps: 2 * (s.Ranks - 1) * n, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

func allGatherV(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	if err := c.Copy(c.OutOf(c.Rank()), c.In()); err != nil {
		return err
	}
	for s := range c.Size() - 1 {
		send, recv := ring.Block(-s), ring.Block(-s-1)
		if err := c.SendRecv(ring.Next, c.OutOf(send), ring.Prev, c.OutOf(recv)); err != nil {
			return fmt.Errorf("step %d: %w", s, err)
		}
	}
	return nil
}

func allGatherVCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Total}
}

func broadcast(c *ccl.Call) error {
	ring := topology.NewRing(c.Size(), c.Rank())
	first, last := c.Rank() == c.Root(), ring.Next == c.Root()
	n := chunks(c.Shape().Bytes, ccl.ParamsOf[Params](c).Chunk)
	// Chunk i comes in while chunk i-1 goes on.
	var err error
	for i := range n + 1 {
		switch {
		case i < n && first:
			err = c.Send(ring.Next, c.Out().Block(i, n))
		case i < n && (last || i == 0):
			err = c.Recv(ring.Prev, c.Out().Block(i, n))
		case i < n:
			err = c.SendRecv(ring.Next, c.Out().Block(i-1, n), ring.Prev, c.Out().Block(i, n))
		case !first && !last:
			err = c.Send(ring.Next, c.Out().Block(i-1, n))
		}
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

func chunks(bytes int, chunk ccl.ByteSize) int {
	return max(1, (bytes+int(chunk)-1)/int(chunk))
}

// broadcastCost: the last of n chunks leaves the root after n steps and takes
// R-2 more to the end of the chain.
func broadcastCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{
		Steps: chunks(s.Bytes, s.Params.(*Params).Chunk) + s.Ranks - 2,
		Bytes: (s.Ranks - 1) * s.Bytes,
	}
}
