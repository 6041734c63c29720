package tree

import (
	"fmt"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func init() { ccl.Register(Algorithm) }

// The kinds of trees that Params.Kind names.
const (
	Kary     = "kary"     // up to Arity children each: topology.NewKaryTree
	Binomial = "binomial" // topology.NewBinomialTree
)

// Params are the parameters of an entry with `module: tree`.
type Params struct {
	// Kind is Kary or Binomial.
	Kind string `yaml:"kind" doc:"kary or binomial"`
	// Arity is the number of children of a rank in a kary tree. 1 makes a chain. More
	// children make the tree lower, which suits short vectors. A rank serves its
	// children one after the other, which makes long vectors slower.
	Arity int `yaml:"arity" doc:"children of a rank in a kary tree; 1 makes a chain"`
	// Chunk bounds a message: longer vectors go in chunks, and a rank passes one
	// on while the next comes in. A power of two keeps the chunks aligned. A gather, a
	// scatter and an all-to-all ignore it: blocks that travel together are one message.
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
	}
	return (&steps.Params{Chunk: p.Chunk}).Validate()
}

// treeOf returns the tree of a number of ranks.
func (p *Params) treeOf(ranks, root int) topology.Tree {
	if p.Kind == Binomial {
		return topology.NewBinomialTree(ranks, root)
	}
	return topology.NewKaryTree(ranks, root, p.Arity)
}

// chunks returns the number of chunks into which a vector is cut.
func (p *Params) chunks(bytes int) int { return steps.Parts(bytes, 1, p.Chunk) }

// Algorithm is the algorithm that `module: tree` names; its parameters are
// Params.
var Algorithm = &ccl.Algorithm{
	Name:   "tree",
	Doc:    "messages go up a tree of ranks to its root and down again, chunk by chunk; few steps for short vectors",
	Params: func() any { return &Params{Kind: Kary, Arity: 2, Chunk: 256 << 10} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "chunks are reduced up the tree to rank 0, and the result comes down",
			Cost: allReduceCost,
			Run:  allReduce,
		},
		ccl.CollReduce: {
			Doc:  "chunks are reduced up the tree of the root",
			Cost: reduceCost,
			Run:  reduce,
		},
		ccl.CollReduceScatter: {
			Doc:  "chunks are reduced up the tree to rank 0, and down each edge come the blocks of the ranks below it",
			Cost: reduceScatterCost,
			Run:  reduceScatter,
		},
		ccl.CollAllGather: {
			Doc:  "inputs go up the tree to rank 0, and down each edge those that the ranks below it lack",
			Cost: allGatherCost,
			Run:  allGather,
		},
		ccl.CollBroadcast: {
			Doc:  "a pipeline of chunks down the tree, from the root",
			Cost: broadcastCost,
			Run:  broadcast,
		},
		ccl.CollGather: {
			Doc:  "every rank sends its block and those from below in one message up the tree of the root",
			Cost: gatherCost,
			Run:  gather,
		},
		ccl.CollScatter: {
			Doc:  "the blocks of a rank and of those below it come down the tree of the root in one message",
			Cost: scatterCost,
			Run:  scatter,
		},
		ccl.CollAllToAll: {
			Doc:  "in round k every block whose distance has bit k moves 2^k ranks on, all in one message, whatever the kind of tree (Bruck and others, 1997)",
			Cost: allToAllCost,
			Run:  allToAll,
		},
		ccl.CollScan: {
			Doc:  "in round k every rank sends its partial result to the rank 2^k places on, whatever the kind of tree (Hillis and Steele, 1986)",
			Cost: scanCost,
			Run:  scan, Ordered: true,
		},
		ccl.CollExScan: {
			Doc:  "like scan, with a second reduction of all that comes",
			Cost: scanCost,
			Run:  exScan, Ordered: true,
		},
	},
}
