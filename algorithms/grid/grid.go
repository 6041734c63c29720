package grid

import (
	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

func init() { ccl.Register(Algorithm) }

// Params are the parameters of an entry with `module: grid`. Their only field, Chunk of
// type ccl.ByteSize, bounds a message, at least 64 bytes, so that long vectors stay in the
// cache and keep the links of a mesh busy.
type Params = steps.Params

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
	if c.Shape().Topology.Kind() == topology.Torus2D {
		return onTorus(c)
	}
	return onMesh(c)
}

// cost: on both kinds each byte crosses W-1 links of each row and H-1 links between rows,
// twice.
func cost(s ccl.Shape) ccl.Cost {
	steps := meshSteps(s)
	if s.Topology.Kind() == topology.Torus2D {
		steps = torusSteps(s)
	}
	return ccl.Cost{Steps: steps, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

// parts returns the number of parts of at most n chunks into which a vector is cut.
func parts(s ccl.Shape, n int) int { return steps.Parts(s.Bytes, n, s.Params.(*Params).Chunk) }
