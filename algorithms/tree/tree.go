package tree

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func init() { ccl.Register(Algorithm) }

// The kinds of trees that Params.Kind names.
const (
	Kary     = "kary"     // up to Arity children each: topology.NewKaryTree
	Binomial = "binomial" // made of pairs: topology.NewBinomialTree
)

// Params are the parameters of an entry with `module: tree`.
type Params struct {
	// Kind is Kary or Binomial.
	Kind string `yaml:"kind" doc:"kary or binomial"`
	// Arity is how many children a rank of a kary tree has. 1 makes a chain. More
	// children make the tree lower, which suits short vectors; but a rank serves
	// them one after the other, which takes long vectors longer.
	Arity int `yaml:"arity" doc:"children of a rank in a kary tree; 1 makes a chain"`
	// Chunk bounds a message: longer vectors go in chunks, and a rank passes one
	// on while the next comes in. A power of two keeps the chunks aligned.
	Chunk ccl.ByteSize `yaml:"chunk" doc:"longest message, in bytes"`
}

// Validate reports an unknown kind, an arity that the kind cannot have, or a
// chunk that holds no element.
func (p *Params) Validate() error {
	switch {
	case p.Kind != Kary && p.Kind != Binomial:
		return fmt.Errorf("kind is %q, want %s or %s", p.Kind, Kary, Binomial)
	case p.Kind == Binomial && p.Arity != 2:
		return fmt.Errorf("arity is %d, but a binomial tree is made of pairs; remove arity, or choose kind %s", p.Arity, Kary)
	case p.Arity < 1:
		return fmt.Errorf("arity is %d, want at least 1", p.Arity)
	case p.Chunk < 64:
		return fmt.Errorf("chunk is %v, want at least 64 bytes", p.Chunk)
	}
	return nil
}

// of returns the tree of so many ranks.
func (p *Params) of(ranks, root int) topology.Tree {
	if p.Kind == Binomial {
		return topology.NewBinomialTree(ranks, root)
	}
	return topology.NewKaryTree(ranks, root, p.Arity)
}

// chunks returns in how many chunks a vector goes.
func (p *Params) chunks(bytes int) int {
	return max(1, (bytes+int(p.Chunk)-1)/int(p.Chunk))
}

// Algorithm is the algorithm that `module: tree` names; its parameters are
// Params.
var Algorithm = &ccl.Algorithm{
	Name:   "tree",
	Doc:    "messages go up a tree of ranks to its root and down again, chunk by chunk; few steps for short reductions and broadcasts",
	Params: func() any { return &Params{Kind: Kary, Arity: 2, Chunk: 256 << 10} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "chunks are folded up the tree to rank 0, and the result comes down",
			Cost: allReduceCost,
			Run:  allReduce,
		},
		ccl.CollAllGather: {
			Doc:  "inputs go up the tree to rank 0, and down each edge those that are missing below it",
			Cost: allGatherVCost,
			Run:  allGatherV,
		},
		ccl.CollBroadcast: {
			Doc:  "a pipeline of chunks down the tree, from the root",
			Cost: broadcastCost,
			Run:  broadcast,
		},
	},
}

func allReduce(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	tree, n := p.of(c.Size(), 0), p.chunks(c.Shape().Bytes)
	if err := foldUp(c, tree, n); err != nil {
		return err
	}
	return passDown(c, tree, c.Out(), n, 0)
}

func allGatherV(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	tree, n := p.of(c.Size(), 0), p.chunks(c.Shape().Bytes)
	if err := c.Copy(c.OutOf(c.Rank()), c.In()); err != nil {
		return err
	}
	for source := range c.Size() {
		if err := passUp(c, tree, c.OutOf(source), n, source); err != nil {
			return fmt.Errorf("input of rank %d: %w", source, err)
		}
	}
	// The last first: what is below a rank has higher numbers than the rank
	// itself, so that most of what it has comes before what it has to wait for.
	for source := c.Size() - 1; source >= 0; source-- {
		if err := passDown(c, tree, c.OutOf(source), n, source); err != nil {
			return fmt.Errorf("input of rank %d: %w", source, err)
		}
	}
	return nil
}

func broadcast(c *ccl.Call) error {
	p := ccl.ParamsOf[Params](c)
	return passDown(c, p.of(c.Size(), c.Root()), c.Out(), p.chunks(c.Shape().Bytes), c.Root())
}

// foldUp gives the root the finished fold of all inputs in its output.
func foldUp(c *ccl.Call, tree topology.Tree, n int) error {
	for i := range n + 1 {
		if err := foldChunk(c, tree, i, n); err != nil {
			return fmt.Errorf("up, chunk %d: %w", i, err)
		}
	}
	return nil
}

// foldChunk folds chunk i of this rank's input with those of its children, in
// their order, while chunk i-1 goes on to its parent.
func foldChunk(c *ccl.Call, tree topology.Tree, i, n int) error {
	me, in, out := c.Rank(), c.In(), c.Out()
	parent, below := tree.Parent(me)
	children := tree.Degree(me)
	folded := out
	if children == 0 {
		folded = in
	}
	var err error
	sending, receiving := i > 0 && below, i < n && children > 0
	switch {
	case sending && receiving:
		err = c.SendRecvReduce(parent, folded.Block(i-1, n), tree.Child(me, 0), out.Block(i, n), in.Block(i, n))
	case sending:
		err = c.Send(parent, folded.Block(i-1, n))
	case receiving:
		err = c.RecvReduce(tree.Child(me, 0), out.Block(i, n), in.Block(i, n))
	}
	if err != nil || !receiving {
		return err
	}
	chunk := out.Block(i, n)
	for k := 1; k < children; k++ {
		if err := c.RecvReduce(tree.Child(me, k), chunk, chunk); err != nil {
			return err
		}
	}
	if !below {
		c.Finish(chunk)
	}
	return nil
}

// passUp takes b from source up to the root.
func passUp(c *ccl.Call, tree topology.Tree, b ccl.Buffer, n, source int) error {
	child, ok := tree.Branch(c.Rank(), source)
	if !ok && c.Rank() != source {
		return nil // source is not below this rank
	}
	parent, _ := tree.Parent(c.Rank())
	for i := range n + 1 {
		if err := pass(c, b, i, n, parent, child); err != nil {
			return fmt.Errorf("up, chunk %d: %w", i, err)
		}
	}
	return nil
}

// passDown takes b down to all ranks but source and those above it, which have it.
func passDown(c *ccl.Call, tree topology.Tree, b ccl.Buffer, n, source int) error {
	child, ok := tree.Branch(c.Rank(), source)
	parent, _ := tree.Parent(c.Rank())
	if ok || c.Rank() == source {
		parent = topology.None
	}
	for i := range n + 1 {
		if err := serve(c, tree, b, i, n, child, parent); err != nil {
			return fmt.Errorf("down, chunk %d: %w", i, err)
		}
	}
	return nil
}

// serve sends chunk i-1 of b to all children but the one that has it, to the last
// of them while chunk i comes in from rank `from`.
func serve(c *ccl.Call, tree topology.Tree, b ccl.Buffer, i, n, has, from int) error {
	last := topology.None
	for k := 0; i > 0 && k < tree.Degree(c.Rank()); k++ {
		child := tree.Served(c.Rank(), k)
		if child == has {
			continue
		}
		if last != topology.None {
			if err := c.Send(last, b.Block(i-1, n)); err != nil {
				return err
			}
		}
		last = child
	}
	return pass(c, b, i, n, last, from)
}

// pass sends chunk i-1 of b to rank `to` while chunk i comes in from rank `from`.
// There are chunks 0 to n-1; topology.None is nobody.
func pass(c *ccl.Call, b ccl.Buffer, i, n, to, from int) error {
	sending, receiving := i > 0 && to != topology.None, i < n && from != topology.None
	switch {
	case sending && receiving:
		return c.SendRecv(to, b.Block(i-1, n), from, b.Block(i, n))
	case sending:
		return c.Send(to, b.Block(i-1, n))
	case receiving:
		return c.Recv(from, b.Block(i, n))
	}
	return nil
}
