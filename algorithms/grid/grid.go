package grid

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func init() { ccl.Register(Algorithm) }

// Params are the parameters of an entry with `module: grid`.
type Params struct {
	// Chunk bounds a message, so that long vectors stay in the cache and keep
	// the links of a mesh busy. A power of two keeps the pieces aligned.
	Chunk ccl.ByteSize `yaml:"chunk" doc:"longest message, in bytes"`
}

// Validate reports a chunk that holds no element.
func (p *Params) Validate() error {
	if p.Chunk < 64 {
		return fmt.Errorf("chunk is %v, want at least 64 bytes", p.Chunk)
	}
	return nil
}

// Algorithm is the algorithm that `module: grid` names; its parameters are
// Params.
var Algorithm = &ccl.Algorithm{
	Name:       "grid",
	Doc:        "all-reduce by rows, then by columns; every message goes to a direct neighbour of a 2-D topology",
	Topologies: []topology.Kind{topology.Torus2D, topology.Mesh2DNoWrap},
	Params:     func() any { return &Params{Chunk: 256 << 10} },
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "torus: reduce-scatter by rows, all-reduce by columns, all-gather by rows (Mikami et al., 2018); mesh: pipelines along the rows and the first column to a corner, and back",
			Cost: cost,
			Run:  allReduce,
		},
	},
}

func allReduce(c *ccl.Call) error {
	if c.Topology().Kind() == topology.Torus2D {
		return onTorus(c)
	}
	return onMesh(c)
}

// cost: on both kinds each byte crosses W-1 links of each row and H-1 between the
// rows, twice.
func cost(s ccl.Shape) ccl.Cost {
	steps := meshSteps(s)
	if s.Topology.Kind() == topology.Torus2D {
		steps = torusSteps(s)
	}
	return ccl.Cost{Steps: steps, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

// pieces returns how many pieces of at most size chunks a vector makes.
func pieces(s ccl.Shape, size int) int {
	size *= int(s.Params.(*Params).Chunk)
	return max(1, (s.Bytes+size-1)/size)
}
