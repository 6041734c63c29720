package direct

import "github.com/goccl/goccl/ccl"

func init() { ccl.Register(Algorithm) }

// Algorithm is the algorithm that `module: direct` names. It has no parameters.
var Algorithm = &ccl.Algorithm{
	Name: "direct",
	Doc:  "every rank reads the others' inputs in place; all-reduce gives the bits of the sequential fold in rank order",
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:    "each rank folds its block of all inputs and stores it to all outputs",
			Cost:   allReduceCost,
			Eager:  true,
			Shared: true,
			Shares: true,
			Run:    allReduce,
		},
		ccl.CollAllGatherV: {
			Doc:    "each rank copies every input to its place",
			Cost:   copyCost,
			Eager:  true,
			Shared: true,
			Run:    allGatherV,
		},
		ccl.CollBroadcast: {
			Doc:    "each rank copies the root's input",
			Cost:   copyCost,
			Eager:  true,
			Shared: true,
			Run:    broadcast,
		},
	},
}

func allReduce(c *ccl.Call) error {
	return c.Window(func(w *ccl.Window) error {
		return w.FoldToAll(w.Share())
	})
}

// allReduceCost: each byte is read from all ranks but the one that folds it, and
// stored to as many.
func allReduceCost(s ccl.Shape) ccl.Cost {
	if s.Eager {
		return ccl.Cost{}
	}
	return ccl.Cost{Steps: 1, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

func allGatherV(c *ccl.Call) error {
	return c.Window(func(w *ccl.Window) error {
		for i := range c.Size() {
			from := (c.Rank() + i) % c.Size() // not all from the same at once
			if err := w.Copy(c.OutOf(from), from); err != nil {
				return err
			}
		}
		return nil
	})
}

func broadcast(c *ccl.Call) error {
	return c.Window(func(w *ccl.Window) error {
		return w.Copy(c.Out(), c.Root())
	})
}

// copyCost: every rank copies what it does not have.
func copyCost(s ccl.Shape) ccl.Cost {
	if s.Eager {
		return ccl.Cost{}
	}
	return ccl.Cost{Steps: 1, Bytes: (s.Ranks - 1) * s.Total}
}
