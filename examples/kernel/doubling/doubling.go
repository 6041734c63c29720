// Package doubling provides the algorithm "doubling": few steps, for short vectors.
package doubling

import "github.com/goccl/goccl/ccl"

func init() { ccl.Register(Algorithm) }

// Algorithm is the algorithm that `module: doubling` in ccl.yaml names.
var Algorithm = &ccl.Algorithm{
	Name: "doubling",
	Doc:  "ranks exchange their whole vectors with a partner 1, 2, 4, ... places away",
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {Doc: "recursive doubling (Thakur, Rabenseifner, Gropp, 2005)", Cost: cost, Run: allReduce},
	},
}
