package pairwise

import (
	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/ccl"
)

func init() { ccl.Register(Algorithm) }

// Algorithm is the algorithm that `module: pairwise` in ccl.yaml names. It has no parameters.
var Algorithm = &ccl.Algorithm{
	Name: "pairwise",
	Doc:  "each rank reads the others' inputs directly, as in direct, and reduces them in the order of a balanced tree; logical shards of package ddp need it",
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce:     kernel(ccl.CollAllReduce, "each rank reduces its part of all inputs by pairwise summation (Higham, 1993) and stores the result to all outputs"),
		ccl.CollReduce:        kernel(ccl.CollReduce, "each rank reduces its part of all inputs by pairwise summation and stores the result to the root's output"),
		ccl.CollReduceScatter: kernel(ccl.CollReduceScatter, "each rank reduces its block of all inputs by pairwise summation"),
	},
}

// kernel returns direct's kernel of a collective, of which each reduction is pairwise.
func kernel(coll ccl.Collective, doc string) *ccl.Kernel {
	k := *direct.Algorithm.Kernels[coll]
	k.Doc, k.Pairwise = doc, true
	return &k
}
