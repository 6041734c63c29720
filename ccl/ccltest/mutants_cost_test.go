package ccltest

import "github.com/goccl/goccl/ccl"

// costMutants are right, but declare another cost than they have.
func costMutants() []mutant {
	reduce, gather, broadcast := ccl.CollAllReduce, ccl.CollAllGather, ccl.CollBroadcast
	ring := func(change func(*ccl.Cost, ccl.Shape)) *ccl.Kernel {
		k := ringReduceKernel(none)
		k.Cost = func(s ccl.Shape) ccl.Cost {
			c := ringReduceCost(s)
			change(&c, s)
			return c
		}
		return k
	}
	notEager := viewReduceKernel(none)
	notEager.Cost = func(s ccl.Shape) ccl.Cost {
		s.Eager = false
		return viewReduceCost(s)
	}
	alwaysEager := viewReduceKernel(none)
	alwaysEager.Cost = func(ccl.Shape) ccl.Cost { return ccl.Cost{} }
	ownAlone := ringGatherKernel(none)
	ownAlone.Cost = func(s ccl.Shape) ccl.Cost {
		return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Bytes}
	}
	fixedChunk := chunkChainKernel(none)
	fixedChunk.Cost = func(s ccl.Shape) ccl.Cost {
		s.Params = &chunkParams{Chunk: 1 << 10}
		return chunkChainCost(s)
	}
	return []mutant{
		{"declares a step too few", "Cost", reduce, ring(func(c *ccl.Cost, _ ccl.Shape) { c.Steps-- }), nil},
		{"declares a step too many", "Cost", reduce, ring(func(c *ccl.Cost, _ ccl.Shape) { c.Steps++ }), nil},
		{"declares an element too few", "Cost", reduce, ring(func(c *ccl.Cost, s ccl.Shape) { c.Bytes -= s.DType.Size() }), nil},
		{"declares an element too many", "Cost", reduce, ring(func(c *ccl.Cost, s ccl.Shape) { c.Bytes += s.DType.Size() }), nil},
		{"declares the cost of one rank", "Cost", reduce, ring(func(c *ccl.Cost, s ccl.Shape) { c.Bytes /= s.Ranks }), nil},
		{"declares a cost for inputs that travel for free", "Cost", reduce, notEager, nil},
		{"declares that all inputs travel for free", "Cost", reduce, alwaysEager, nil},
		{"declares what one rank sends for all", "Cost", gather, ownAlone, nil},
		{"declares a cost that does not look at its parameters", "Cost", broadcast, fixedChunk, chunked},
		{string(ignoresParams), "Cost", broadcast, chunkChainKernel(ignoresParams), chunked},
	}
}
