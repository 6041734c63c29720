// Package algorithms registers all built-in algorithms, so that a configuration can name
// them. Import it for this side effect.
//
//	import _ "github.com/goccl/goccl/algorithms"
//
// A program that needs only some of them imports their packages instead.
//
// # Model
//
// An algorithm is a value of type ccl.Algorithm, which its package registers in
// ccl.DefaultRegistry from an init function. `module:` in ccl.yaml names it. Algorithms of
// your own join in the same way: the engine knows an algorithm by its registration only.
//
// # Failure
//
// Registering a second algorithm of the same name panics.
package algorithms

import (
	_ "github.com/goccl/goccl/algorithms/direct"
	_ "github.com/goccl/goccl/algorithms/doubletree"
	_ "github.com/goccl/goccl/algorithms/grid"
	_ "github.com/goccl/goccl/algorithms/hierarchical"
	_ "github.com/goccl/goccl/algorithms/mpi"
	_ "github.com/goccl/goccl/algorithms/pairwise"
	_ "github.com/goccl/goccl/algorithms/ring"
	_ "github.com/goccl/goccl/algorithms/tree"
)
