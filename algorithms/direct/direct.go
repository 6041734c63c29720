package direct

import "github.com/goccl/goccl/ccl"

func init() { ccl.Register(Algorithm) }

// Algorithm is the algorithm that `module: direct` in ccl.yaml names. It has no parameters.
var Algorithm = &ccl.Algorithm{
	Name: "direct",
	Doc:  "each rank reads the others' inputs directly (zero-copy); all-reduce gives the bits of the sequential reduction in rank order",
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "each rank reduces its part of all inputs and stores the result to all outputs",
			Cost: viewCost(func(s ccl.Shape) int { return 2 * (s.Ranks - 1) * s.Bytes }), // read from all but one, stored to as many
			Run:  reduceToAll, ReadsOwnPart: true, Eager: true, AnyRunner: true, Ordered: true,
		},
		ccl.CollReduce: {
			Doc:  "each rank reduces its part of all inputs and stores the result to the root's output",
			Cost: viewCost(func(s ccl.Shape) int { return s.Ranks * s.Bytes }),
			Run:  reduceToAll, ReadsOwnPart: true, Eager: true, AnyRunner: true, Ordered: true,
		},
		ccl.CollReduceScatter: {
			Doc:  "each rank reduces its block of all inputs",
			Cost: viewCost(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Bytes }),
			Run:  reduceScatter, ReadsOwnPart: true, Eager: true, AnyRunner: true, Ordered: true,
		},
		ccl.CollScan: {
			Doc:  "each rank reduces its part of the inputs, one after the other, and stores every partial result to that rank's output",
			Cost: viewCost(func(s ccl.Shape) int { return 2 * (s.Ranks - 1) * s.Bytes }),
			Run:  scan, Eager: true, AnyRunner: true, Ordered: true,
		},
		ccl.CollExScan: {
			Doc:  "like scan",
			Cost: viewCost(func(s ccl.Shape) int { return 2 * (s.Ranks - 1) * s.Bytes }),
			Run:  scan, Eager: true, AnyRunner: true, Ordered: true,
		},
		ccl.CollAllGather: {
			Doc:  "each rank copies every input into its output",
			Cost: viewCost(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Total }),
			Run:  allGather, Eager: true, AnyRunner: true,
		},
		ccl.CollBroadcast: {
			Doc:  "each rank copies the root's input",
			Cost: viewCost(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Total }),
			Run:  broadcast, Eager: true, AnyRunner: true,
		},
		ccl.CollGather: {
			Doc:  "the root copies every input into its output",
			Cost: viewCost(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Bytes }),
			Run:  gather, ReadsOwnPart: true, Eager: true, AnyRunner: true,
		},
		ccl.CollScatter: {
			Doc:  "each rank copies its block of the root's input",
			Cost: viewCost(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Total }),
			Run:  scatter, ReadsOwnPart: true, Eager: true, AnyRunner: true,
		},
		ccl.CollAllToAll: {
			Doc:  "each rank copies its block of every input",
			Cost: viewCost(func(s ccl.Shape) int { return (s.Ranks - 1) * s.Total }),
			Run:  allToAll, ReadsOwnPart: true, Eager: true, AnyRunner: true,
		},
	},
}

// viewCost returns the cost of a kernel that opens a view and moves that number of bytes
// through it. Data that travels with the synchronisation is free.
func viewCost(bytes func(ccl.Shape) int) func(ccl.Shape) ccl.Cost {
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
	block := c.InRange(c.Rank(), c.Rank()) // the block for this rank, at the same position in all inputs
	return c.View(func(v *ccl.View) error {
		return v.Reduce(c.Out(), block.Lo)
	})
}

func scan(c *ccl.Call) error {
	return c.View(func(v *ccl.View) error {
		return v.ScanToAll(v.Part())
	})
}

func allGather(c *ccl.Call) error {
	return c.View(func(v *ccl.View) error {
		for i := range c.Size() {
			from := (c.Rank() + i) % c.Size() // so that ranks do not all read the same input at once
			if err := v.Copy(c.OutBlock(from), from); err != nil {
				return err
			}
		}
		return nil
	})
}

func broadcast(c *ccl.Call) error {
	return c.View(func(v *ccl.View) error {
		return v.Copy(c.Out(), c.Root())
	})
}

func gather(c *ccl.Call) error {
	return c.View(func(v *ccl.View) error {
		if c.Rank() != c.Root() {
			return nil
		}
		for from := range c.Size() {
			if err := v.Copy(c.OutBlock(from), from); err != nil {
				return err
			}
		}
		return nil
	})
}

func scatter(c *ccl.Call) error {
	block := c.InRange(c.Root(), c.Rank())
	return c.View(func(v *ccl.View) error {
		return v.CopyPart(c.Out(), c.Root(), block.Lo)
	})
}

func allToAll(c *ccl.Call) error {
	return c.View(func(v *ccl.View) error {
		for i := range c.Size() {
			from := (c.Rank() + i) % c.Size()
			block := c.InRange(from, c.Rank())
			if err := v.CopyPart(c.OutBlock(from), from, block.Lo); err != nil {
				return err
			}
		}
		return nil
	})
}
