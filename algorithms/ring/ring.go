package ring

import (
	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
)

func init() { ccl.Register(Algorithm) }

// Params are the parameters of an entry with `module: ring`. Their only field, Chunk of
// type ccl.ByteSize, bounds a message, at least 64 bytes: longer vectors go around the
// ring in parts, so that a part is still in the cache when it comes round again, and
// along a chain in a pipeline of chunks. An all-gather and an all-to-all send whole
// blocks.
type Params = steps.Params

// Algorithm is the algorithm that `module: ring` names; its parameters are
// Params.
var Algorithm = &ccl.Algorithm{
	Name:   "ring",
	Doc:    "neighbours exchange messages around a ring; each rank sends as little as possible, whatever the number of ranks",
	Params: func() any { return &Params{Chunk: 256 << 10} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "reduce-scatter, then all-gather, once around the ring each (Patarasuk and Yuan, 2009)",
			Cost: allReduceCost,
			Run:  allReduce,
		},
		ccl.CollReduce: {
			Doc:  "chunks are reduced along the ring, in a pipeline that ends at the root",
			Cost: chainCost,
			Run:  reduce,
		},
		ccl.CollReduceScatter: {
			Doc:  "every block is reduced once around the ring, and ends at its rank (Patarasuk and Yuan, 2009)",
			Cost: reduceScatterCost,
			Run:  reduceScatter,
		},
		ccl.CollAllGather: {
			Doc:  "every input is passed on around the ring",
			Cost: allGatherCost,
			Run:  allGather,
		},
		ccl.CollBroadcast: {
			Doc:  "a pipeline of chunks along the ring, from the root",
			Cost: chainCost,
			Run:  broadcast,
		},
		ccl.CollAllToAll: {
			Doc:  "in step s every rank sends to the rank s places on: pairwise exchange (Thakur, Rabenseifner and Gropp, 2005)",
			Cost: allToAllCost,
			Run:  allToAll,
		},
		ccl.CollScan: {
			Doc:  "chunks are reduced along the ring, in a pipeline from rank 0 to the last",
			Cost: chainCost,
			Run:  scan, Ordered: true,
		},
		ccl.CollExScan: {
			Doc:  "like scan, but a rank takes what comes as its result, before it adds its input",
			Cost: chainCost,
			Run:  exScan, Ordered: true,
		},
	},
}
