package doubletree

import (
	"fmt"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func init() { ccl.Register(Algorithm) }

// Params are the parameters of an entry with `module: doubletree`. Their only field, Chunk
// of type ccl.ByteSize, bounds a message, at least 64 bytes: a rank passes one chunk of a
// long vector on while the next comes in.
type Params = steps.Params

// chunks returns the number of chunks into which each half of a vector is cut.
func chunks(s ccl.Shape) int {
	return steps.Parts(s.Bytes-s.Bytes/2, 1, s.Params.(*Params).Chunk)
}

// Algorithm is the algorithm that `module: doubletree` names; its parameters are
// Params.
var Algorithm = &ccl.Algorithm{
	Name:   "doubletree",
	Doc:    "two binary trees share a vector, so that all ranks send and receive all the time; for long reductions and broadcasts",
	Params: func() any { return &Params{Chunk: 256 << 10} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "each half is reduced up its tree to rank 0, and the result comes down (Sanders, Speck and Träff, 2009)",
			Cost: costOf((*play).up, (*play).down),
			Run:  allReduce,
		},
		ccl.CollReduce: {
			Doc:  "each half is reduced up its tree to the root (Sanders, Speck and Träff, 2009)",
			Cost: costOf((*play).up),
			Run:  reduce,
		},
		ccl.CollBroadcast: {
			Doc:  "each half comes down its tree from the root (Sanders, Speck and Träff, 2009)",
			Cost: costOf((*play).down),
			Run:  broadcast,
		},
	},
}

func allReduce(c *ccl.Call) error {
	two, n := topology.NewTwoTrees(c.Size(), 0), chunks(c.Shape())
	err := reduceUp(c, two, n, func(tree, i int) ccl.Buffer { return chunk(c.Out(), tree, i, n) })
	if err != nil {
		return err
	}
	return passDown(c, two, n)
}

func reduce(c *ccl.Call) error {
	two, n := topology.NewTwoTrees(c.Size(), c.Root()), chunks(c.Shape())
	if c.Rank() == c.Root() {
		return reduceUp(c, two, n, func(tree, i int) ccl.Buffer { return chunk(c.Out(), tree, i, n) })
	}
	longest := chunk(c.In(), 0, 0, n).Len()
	spare := c.Scratch(4 * longest)
	return reduceUp(c, two, n, func(tree, i int) ccl.Buffer { // two chunks of each tree
		return spare.Block(2*tree+i%2, 4).Slice(0, chunk(c.In(), tree, i, n).Len())
	})
}

func broadcast(c *ccl.Call) error {
	two, n := topology.NewTwoTrees(c.Size(), c.Root()), chunks(c.Shape())
	return passDown(c, two, n)
}

// chunk returns chunk i of n of the half of b that a tree carries.
func chunk(b ccl.Buffer, tree, i, n int) ccl.Buffer { return b.Block(tree, 2).Block(i, n) }

// edge is an edge of a tree, to peer or to topology.None. The first chunk crosses it in
// step, and every other one two steps after the chunk before it.
type edge struct{ tree, peer, step int }

// chunk returns the chunk, of n, that crosses the edge in step t, one of the edge's parity.
func (e edge) chunk(t, n int) (i int, ok bool) {
	i = (t - e.step) / 2
	return i, e.peer != topology.None && t >= e.step && i < n
}

// message returns the part of b that crosses the edge in step t, and its peer;
// the peer is topology.None if no message crosses the edge in that step.
func (e edge) message(b ccl.Buffer, t, n int) (peer int, part ccl.Buffer) {
	i, ok := e.chunk(t, n)
	if !ok {
		return topology.None, part
	}
	return e.peer, chunk(b, e.tree, i, n)
}

// edges returns rank's edges to its parents and children in a pipeline down the trees,
// indexed by the parity of their steps.
func edges(two topology.TwoTrees, rank int) (parents, children [2]edge) {
	for i := range 2 {
		parents[i].peer, children[i].peer = topology.None, topology.None
	}

	for tree := range 2 {
		if parent, ok := two.Parent(tree, rank); ok {
			step := two.Step(tree, rank)
			parents[step%2] = edge{tree, parent, step}
		}
		for i := range two.Degree(tree, rank) {
			child := two.Child(tree, rank, i)
			step := two.Step(tree, child)
			children[step%2] = edge{tree, child, step}
		}
	}
	return parents, children
}

// passDown sends the root's output to all other ranks.
func passDown(c *ccl.Call, two topology.TwoTrees, n int) error {
	parents, children := edges(two, c.Rank())
	for t := range two.Span() + 2*n {
		to, sent := children[t%2].message(c.Out(), t, n)
		from, received := parents[t%2].message(c.Out(), t, n)
		if err := steps.SendRecv(c, to, sent, from, received); err != nil {
			return fmt.Errorf("down, step %d: %w", t, err)
		}
	}
	return nil
}

// reduceUp reduces all inputs to the root and applies the epilogue, by the steps of
// passDown in the opposite order. have returns the memory in which this rank reduces chunk
// i of a tree: at least two chunks of each, on the root all of them.
func reduceUp(c *ccl.Call, two topology.TwoTrees, n int, have func(tree, i int) ccl.Buffer) error {
	parents, children := edges(two, c.Rank())
	for i := range 2 { // Span is even, so that an edge keeps its parity
		parents[i].step = two.Span() - parents[i].step
		children[i].step = two.Span() - children[i].step
	}
	_, hasParent := two.Parent(0, c.Rank())
	for t := range two.Span() + 2*n {
		from, to := children[t%2], parents[t%2]
		i, receiving := from.chunk(t, n)
		k, sending := to.chunk(t, n)

		var sent, dst, with ccl.Buffer
		if sending {
			sent = have(to.tree, k)
			if two.Degree(to.tree, c.Rank()) == 0 {
				sent = chunk(c.In(), to.tree, k, n)
			}
		}
		if receiving {
			dst = have(from.tree, i)
			with = dst
			if sister := children[1-t%2]; sister.peer == topology.None || sister.tree != from.tree || sister.step > from.step {
				with = chunk(c.In(), from.tree, i, n) // the first child's chunk
			}
		}

		var err error
		switch {
		case sending && receiving:
			err = c.SendRecvReduce(to.peer, sent, from.peer, dst, with)
		case sending:
			err = c.Send(to.peer, sent)
		case receiving:
			err = c.RecvReduce(from.peer, dst, with)
		}
		if err != nil {
			return fmt.Errorf("up, step %d: %w", t, err)
		}

		if receiving && !hasParent {
			c.Epilogue(dst)
		}
	}
	return nil
}
