package ring

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
)

func init() { ccl.Register(Algorithm) }

// Params are the parameters of an entry with `module: ring`.
type Params struct {
	// Chunk bounds a message: longer vectors go around the ring in parts, so
	// that a part is still in the cache when it comes round again, and what
	// passes from rank to rank is a pipeline. A power of two keeps the parts
	// aligned. An all-gather and an all-to-all fold nothing, and send whole blocks.
	Chunk ccl.ByteSize `yaml:"chunk" doc:"longest message, in bytes"`
}

// Validate reports a chunk that holds no element.
func (p *Params) Validate() error {
	if p.Chunk < 64 {
		return fmt.Errorf("chunk is %v, want at least 64 bytes", p.Chunk)
	}
	return nil
}

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
			Doc:  "chunks are folded along the ring, in a pipeline that ends at the root",
			Cost: chainCost,
			Run:  reduce,
		},
		ccl.CollReduceScatter: {
			Doc:  "every block is folded once around the ring, and ends at its rank (Patarasuk and Yuan, 2009)",
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
			Doc:  "in step s every rank sends to the one s places on: pairwise exchange (Thakur, Rabenseifner and Gropp, 2005)",
			Cost: allToAllCost,
			Run:  allToAll,
		},
		ccl.CollScan: {
			Doc:  "chunks are folded along the ring, in a pipeline from rank 0 to the last",
			Cost: chainCost,
			Run:  scan, Ordered: true,
		},
		ccl.CollExScan: {
			Doc:  "like scan, but what comes is the result before it is folded",
			Cost: chainCost,
			Run:  exScan, Ordered: true,
		},
	},
}

// chunks returns in how many parts of at most a chunk so many bytes go.
func chunks(bytes int, chunk ccl.ByteSize) int {
	return max(1, (bytes+int(chunk)-1)/int(chunk))
}
