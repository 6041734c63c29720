package hierarchical

import (
	"slices"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
)

func init() { ccl.Register(Algorithm) }

// Params are the parameters of an entry with `module: hierarchical`.
type Params struct {
	// Chunk is the length in bytes, at least 64, of the shortest pieces in which a long all-reduce
	// passes through the levels: there are at most four.
	Chunk ccl.ByteSize `yaml:"chunk" doc:"shortest piece of a long all-reduce, in bytes"`
}

// Validate rejects a chunk that cannot hold an element of every type.
func (p *Params) Validate() error { return (&steps.Params{Chunk: p.Chunk}).Validate() }

// Algorithm is the algorithm that `module: hierarchical` names; its parameters are Params.
var Algorithm = &ccl.Algorithm{
	Name:   "hierarchical",
	Doc:    "two levels, for ranks on several nodes: shared memory on each node, and messages among one leader of each node",
	Params: func() any { return &Params{Chunk: 1 << 20} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:       "reduce on each node, all-reduce among the leaders, broadcast on each node, in up to four pieces",
			Cost:      allReduceCost,
			Run:       allReduce,
			TwoLevels: true, Ordered: true,
		},
		ccl.CollReduce: {
			Doc:       "reduce on each node, then among the leaders; for a root that leads no node, its leader broadcasts the result on the node",
			Cost:      cost(func(s ccl.Shape) int { return (s.Ranks + s.Nodes + s.Ranks/s.Nodes - 1) * s.Bytes }),
			Run:       reduce,
			TwoLevels: true, Ordered: true,
		},
		ccl.CollReduceScatter: {
			Doc:       "reduce on each node, reduce-scatter among the leaders, and each rank takes its block of its node's result",
			Cost:      cost(func(s ccl.Shape) int { return (s.Ranks+s.Nodes-1)*s.Bytes + (s.Ranks-s.Nodes)*s.Bytes/s.Nodes }),
			Run:       reduceScatter,
			TwoLevels: true, Ordered: true,
		},
		ccl.CollAllGather: {
			Doc:       "all-gather on each node, all-gather of the nodes' blocks among the leaders, broadcast on each node",
			Cost:      cost(func(s ccl.Shape) int { return (s.Ranks-s.Nodes)*s.Total/s.Nodes + (s.Ranks-1)*s.Total }),
			Run:       allGather,
			TwoLevels: true,
		},
		ccl.CollBroadcast: {
			Doc:       "broadcast on the root's node, among the leaders, then on the other nodes",
			Cost:      cost(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Total }),
			Run:       broadcast,
			TwoLevels: true,
		},
	},
}

// cost returns the cost of a kernel whose calls on the levels are by direct, where all nodes have
// the same number of ranks.
func cost(bytes func(ccl.Shape) int) func(ccl.Shape) ccl.Cost {
	return func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: 3, Bytes: bytes(s)} }
}

func allReduceCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: 2 + pieces(s), Bytes: (s.Ranks + 2*(s.Nodes-1) + s.Ranks - s.Nodes) * s.Bytes}
}

// leader is the rank of a node's leader on its node.
const leader = 0

// allReduce reduces in pieces. While the leaders reduce one, the nodes reduce the next one and
// broadcast the one before.
func allReduce(c *ccl.Call) error {
	n := pieces(c.Shape())
	if err := reducePiece(c, 0, n); err != nil {
		return err
	}

	for i := range n {
		if err := reduceAmongLeaders(c, i, n, func() error {
			if err := reducePiece(c, i+1, n); err != nil {
				return err
			}
			return broadcastPiece(c, i-1, n)
		}); err != nil {
			return err
		}
	}
	return broadcastPiece(c, n-1, n)
}

// reduceAmongLeaders reduces piece i of n on the leaders, and meanwhile does what is done on all
// ranks of a node, which is nothing for a single piece.
func reduceAmongLeaders(c *ccl.Call, i, n int, onNode func() error) error {
	leaders, out := c.Leaders(), piece(c.Out(), i, n)
	if leaders == nil {
		return onNode()
	}

	onLeaders := func() error { return leaders.AllReduce(out, out) }
	var err error
	if n == 1 {
		err = onLeaders()
	} else {
		err = c.Overlap(onLeaders, onNode)
	}
	if err == nil {
		c.Epilogue(out)
	}
	return err
}

// reducePiece reduces piece i of n on the node. There is no piece n.
func reducePiece(c *ccl.Call, i, n int) error {
	if i == n {
		return nil
	}
	return c.Node().Reduce(piece(c.In(), i, n), piece(c.Out(), i, n), leader)
}

// broadcastPiece broadcasts piece i of n on the node. There is no piece -1.
func broadcastPiece(c *ccl.Call, i, n int) error {
	if i < 0 {
		return nil
	}
	return c.Node().Broadcast(piece(c.Out(), i, n), leader)
}

// piece returns piece i of n.
func piece(b ccl.Buffer, i, n int) ccl.Buffer {
	length, end := b.Len()/n, b.Len()
	if i+1 < n {
		end = length * (i + 1)
	}
	return b.Slice(length*i, end)
}

// pieces returns the number of pieces of an all-reduce.
func pieces(s ccl.Shape) int {
	return int(min(max(1, ccl.ByteSize(s.Bytes)/s.Params.(*Params).Chunk), mostPieces))
}

// mostPieces is for links with a delay, which each piece meets.
const mostPieces = 4

func reduce(c *ccl.Call) error {
	node, leaders, result := c.Node(), c.Leaders(), c.Out()
	_, here := slices.BinarySearch(node.Ranks(), c.Root())
	behind := here && c.Root() != node.Ranks()[leader] // the root leads no node
	if c.Rank() != c.Root() && (leaders != nil || behind) {
		result = c.Scratch(c.In().Len())
	}
	if err := node.Reduce(c.In(), result, leader); err != nil {
		return err
	}

	if leaders != nil {
		to := nodeOf(c, c.Root())
		if err := leaders.Reduce(result, result, to); err != nil {
			return err
		}
		if leaders.Rank() == to {
			c.Epilogue(result)
		}
	}
	if !behind {
		return nil
	}
	return node.Broadcast(result, leader) // by the level, where the root waits for longer than its leader
}

// nodeOf returns the number of a rank's node, on a leader.
func nodeOf(c *ccl.Call, rank int) int {
	node, found := slices.BinarySearch(c.Leaders().Ranks(), rank)
	if !found {
		node-- // the first ranks of the nodes before it are lower
	}
	return node
}

func reduceScatter(c *ccl.Call) error {
	whole := c.Scratch(c.In().Len())
	if err := c.Node().Reduce(c.In(), whole, leader); err != nil {
		return err
	}

	part := nodePart(c, whole)
	if leaders := c.Leaders(); leaders != nil {
		if err := leaders.ReduceScatter(whole); err != nil {
			return err
		}
		c.Epilogue(part)
	}
	if err := c.Node().Broadcast(part, leader); err != nil {
		return err
	}
	lo := position(c, c.Rank()) - position(c, c.Node().Ranks()[leader])
	return c.Copy(c.Out(), part.Slice(lo, lo+c.BlockLen(c.Rank())))
}

func allGather(c *ccl.Call) error {
	whole, packed := c.Out(), isPacked(c)
	if !packed {
		whole = c.Scratch(position(c, c.Size()))
	}
	lo := position(c, c.Rank())
	if err := c.Copy(whole.Slice(lo, lo+c.In().Len()), c.In()); err != nil {
		return err
	}
	if err := c.Node().AllGather(nodePart(c, whole)); err != nil {
		return err
	}

	if leaders := c.Leaders(); leaders != nil {
		if err := leaders.AllGather(whole); err != nil {
			return err
		}
	}
	if err := c.Node().Broadcast(whole, leader); err != nil || packed {
		return err
	}

	for rank, at := 0, 0; rank < c.Size(); rank++ {
		n := c.BlockLen(rank)
		if err := c.Copy(c.OutBlock(rank), whole.Slice(at, at+n)); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// position returns where a rank's block begins in packed blocks of all ranks; for rank Size, where
// they end.
func position(c *ccl.Call, rank int) (at int) {
	for r := range rank {
		at += c.BlockLen(r)
	}
	return at
}

// nodePart returns the blocks of this node's ranks.
func nodePart(c *ccl.Call, whole ccl.Buffer) ccl.Buffer {
	first := c.Node().Ranks()[leader]
	return whole.Slice(position(c, first), position(c, first+len(c.Node().Ranks())))
}

// isPacked reports whether this rank's output is packed blocks, in rank order.
func isPacked(c *ccl.Call) bool {
	at := 0
	for rank := range c.Size() {
		block := c.OutBlock(rank)
		if n := block.Len(); n > 0 && &block.Bytes()[0] != &c.Out().Slice(at, at+n).Bytes()[0] {
			return false
		}
		at += block.Len()
	}
	return at == c.Out().Len()
}

func broadcast(c *ccl.Call) error {
	node := c.Node()
	if from, here := slices.BinarySearch(node.Ranks(), c.Root()); here {
		if err := node.Broadcast(c.Out(), from); err != nil {
			return err
		}
		if leaders := c.Leaders(); leaders != nil {
			return leaders.Broadcast(c.Out(), nodeOf(c, c.Root()))
		}
		return nil
	}

	if leaders := c.Leaders(); leaders != nil {
		if err := leaders.Broadcast(c.Out(), nodeOf(c, c.Root())); err != nil {
			return err
		}
	}
	return node.Broadcast(c.Out(), leader)
}
