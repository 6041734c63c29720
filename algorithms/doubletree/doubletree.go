package doubletree

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func init() { ccl.Register(Algorithm) }

// Params are the parameters of an entry with `module: doubletree`.
type Params struct {
	// Chunk bounds a message: longer halves go in chunks, and a rank passes one on
	// while the next comes in. A power of two keeps the chunks aligned.
	Chunk ccl.ByteSize `yaml:"chunk" doc:"longest message, in bytes"`
}

// Validate reports a chunk that holds no element.
func (p *Params) Validate() error {
	if p.Chunk < 64 {
		return fmt.Errorf("chunk is %v, want at least 64 bytes", p.Chunk)
	}
	return nil
}

// chunks returns in how many chunks each half of a vector goes.
func (p *Params) chunks(bytes int) int {
	half := bytes - bytes/2
	return max(1, (half+int(p.Chunk)-1)/int(p.Chunk))
}

// Algorithm is the algorithm that `module: doubletree` names; its parameters are
// Params.
var Algorithm = &ccl.Algorithm{
	Name:   "doubletree",
	Doc:    "two binary trees share a vector, so that all ranks send and receive all the time; for long reductions and broadcasts",
	Params: func() any { return &Params{Chunk: 256 << 10} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "each half is folded up its tree to rank 0, and comes down (Sanders, Speck and Träff, 2009)",
			Cost: allReduceCost,
			Run:  allReduce,
		},
		ccl.CollReduce: {
			Doc:  "each half is folded up its tree to the root (Sanders, Speck and Träff, 2009)",
			Cost: reduceCost,
			Run:  reduce,
		},
		ccl.CollBroadcast: {
			Doc:  "each half comes down its tree from the root (Sanders, Speck and Träff, 2009)",
			Cost: broadcastCost,
			Run:  broadcast,
		},
	},
}

func allReduce(c *ccl.Call) error {
	two, n := topology.NewTwoTrees(c.Size(), 0), ccl.ParamsOf[Params](c).chunks(c.Shape().Bytes)
	err := foldUp(c, two, n, func(tree, i int) ccl.Buffer { return chunk(c.Out(), tree, i, n) })
	if err != nil {
		return err
	}
	return passDown(c, two, n)
}

func reduce(c *ccl.Call) error {
	two, n := topology.NewTwoTrees(c.Size(), c.Root()), ccl.ParamsOf[Params](c).chunks(c.Shape().Bytes)
	if c.Rank() == c.Root() {
		return foldUp(c, two, n, func(tree, i int) ccl.Buffer { return chunk(c.Out(), tree, i, n) })
	}
	longest := chunk(c.In(), 0, 0, n).Len()
	spare := c.Scratch(4 * longest)
	return foldUp(c, two, n, func(tree, i int) ccl.Buffer { // two of each tree
		return spare.Block(2*tree+i%2, 4).Slice(0, chunk(c.In(), tree, i, n).Len())
	})
}

func broadcast(c *ccl.Call) error {
	two, n := topology.NewTwoTrees(c.Size(), c.Root()), ccl.ParamsOf[Params](c).chunks(c.Shape().Bytes)
	return passDown(c, two, n)
}

// chunk returns chunk i of the n of the half of b that goes over a tree.
func chunk(b ccl.Buffer, tree, i, n int) ccl.Buffer { return b.Block(tree, 2).Block(i, n) }

// lane is an edge to a rank, in a tree. The first chunk goes over it in a step, and
// each other two steps after the one before. A lane that is not there has no peer.
type lane struct{ tree, peer, step int }

// chunk returns which of n chunks goes over the lane in step t, one of the lane's.
func (l lane) chunk(t, n int) (i int, ok bool) {
	i = (t - l.step) / 2
	return i, l.peer != topology.None && t >= l.step && i < n
}

// lanes returns rank's lanes to the parents and to the children in a pipeline down the
// trees, each at the parity of its steps.
func lanes(two topology.TwoTrees, rank int) (parents, children [2]lane) {
	for i := range 2 {
		parents[i].peer, children[i].peer = topology.None, topology.None
	}
	for tree := range 2 {
		if parent, ok := two.Parent(tree, rank); ok {
			step := two.Step(tree, rank)
			parents[step%2] = lane{tree, parent, step}
		}
		for i := range two.Degree(tree, rank) {
			child := two.Child(tree, rank, i)
			step := two.Step(tree, child)
			children[step%2] = lane{tree, child, step}
		}
	}
	return parents, children
}

// passDown takes the root's output to all others.
func passDown(c *ccl.Call, two topology.TwoTrees, n int) error {
	parents, children := lanes(two, c.Rank())
	for t := range two.Span() + 2*n {
		from, to := parents[t%2], children[t%2]
		i, receiving := from.chunk(t, n)
		k, sending := to.chunk(t, n)
		var err error
		switch {
		case sending && receiving:
			err = c.SendRecv(to.peer, chunk(c.Out(), to.tree, k, n), from.peer, chunk(c.Out(), from.tree, i, n))
		case sending:
			err = c.Send(to.peer, chunk(c.Out(), to.tree, k, n))
		case receiving:
			err = c.Recv(from.peer, chunk(c.Out(), from.tree, i, n))
		}
		if err != nil {
			return fmt.Errorf("down, step %d: %w", t, err)
		}
	}
	return nil
}

// foldUp gives the root the finished fold of all inputs, by the steps of passDown in
// the opposite order. have is where a rank folds chunk i of a tree: it keeps at least
// two of each, and all at the root.
func foldUp(c *ccl.Call, two topology.TwoTrees, n int, have func(tree, i int) ccl.Buffer) error {
	parents, children := lanes(two, c.Rank())
	for i := range 2 { // Span is even, so that a lane keeps its parity
		parents[i].step = two.Span() - parents[i].step
		children[i].step = two.Span() - children[i].step
	}
	_, below := two.Parent(0, c.Rank())
	for t := range two.Span() + 2*n {
		from, to := children[t%2], parents[t%2]
		i, receiving := from.chunk(t, n)
		k, sending := to.chunk(t, n)
		var folded, dst, with ccl.Buffer
		if sending {
			folded = have(to.tree, k)
			if two.Degree(to.tree, c.Rank()) == 0 {
				folded = chunk(c.In(), to.tree, k, n)
			}
		}
		if receiving {
			dst = have(from.tree, i)
			with = dst
			if sister := children[1-t%2]; sister.peer == topology.None || sister.tree != from.tree || sister.step > from.step {
				with = chunk(c.In(), from.tree, i, n) // nothing is folded yet
			}
		}
		var err error
		switch {
		case sending && receiving:
			err = c.SendRecvReduce(to.peer, folded, from.peer, dst, with)
		case sending:
			err = c.Send(to.peer, folded)
		case receiving:
			err = c.RecvReduce(from.peer, dst, with)
		}
		if err != nil {
			return fmt.Errorf("up, step %d: %w", t, err)
		}
		if receiving && !below {
			c.Epilogue(dst)
		}
	}
	return nil
}
