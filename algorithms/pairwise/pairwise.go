package pairwise

import "github.com/goccl/goccl/ccl"

func init() { ccl.Register(Algorithm) }

// Algorithm is the algorithm that `module: pairwise` in ccl.yaml names. It has no parameters.
var Algorithm = &ccl.Algorithm{
	Name: "pairwise",
	Doc:  "each rank reads the others' inputs directly, as in direct, and reduces them in the order of a balanced tree; logical shards of package ddp need it",
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "each rank reduces its part of all inputs by pairwise summation (Higham, 1993) and stores the result to all outputs",
			Cost: cost(func(s ccl.Shape) int { return 2 * (s.Ranks - 1) * s.Bytes }), // read from all but one, stored to as many
			Run:  reduceToAll, ReadsOwnPart: true, Eager: true, AnyRunner: true, Ordered: true, Pairwise: true,
		},
		ccl.CollReduce: {
			Doc:  "each rank reduces its part of all inputs by pairwise summation and stores the result to the root's output",
			Cost: cost(func(s ccl.Shape) int { return s.Ranks * s.Bytes }),
			Run:  reduceToAll, ReadsOwnPart: true, Eager: true, AnyRunner: true, Ordered: true, Pairwise: true,
		},
		ccl.CollReduceScatter: {
			Doc:  "each rank reduces its block of all inputs by pairwise summation",
			Cost: cost(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Bytes }),
			Run:  reduceScatter, ReadsOwnPart: true, Eager: true, AnyRunner: true, Ordered: true, Pairwise: true,
		},
	},
}

// cost returns the cost of a kernel that opens a view and moves that number of bytes through it.
// Data that travels with the synchronisation is free.
func cost(bytes func(ccl.Shape) int) func(ccl.Shape) ccl.Cost {
	return func(s ccl.Shape) ccl.Cost {
		if s.Eager {
			return ccl.Cost{}
		}
		return ccl.Cost{Steps: 1, Bytes: bytes(s)}
	}
}

func reduceToAll(c *ccl.Call) error {
	return c.View(func(v *ccl.View) error {
		return v.ReduceToAll(v.Part())
	})
}

func reduceScatter(c *ccl.Call) error {
	block := c.InRange(c.Rank(), c.Rank())
	return c.View(func(v *ccl.View) error {
		return v.Reduce(c.Out(), block.Lo)
	})
}
