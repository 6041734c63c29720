// Package algorithms is all of the algorithms that come with goccl: import it for
// its side effect, which registers them, so that a configuration can name each.
//
//	import _ "github.com/goccl/goccl/algorithms"
//
// A program that wants few of them imports their packages instead.
//
// # Model
//
// An algorithm is a value of type ccl.Algorithm, which its package registers in
// ccl.DefaultRegistry from an init function. `module:` in ccl.yaml names it. An
// algorithm of your own joins them in the same way: the engine knows none of them
// but by its registration.
//
// # Concurrency
//
// Registration happens while the program is initialised. The registry may be used
// concurrently.
//
// # Failure
//
// Two algorithms of one name are a defect of the program: the second registration
// panics.
package algorithms

import (
	_ "github.com/goccl/goccl/algorithms/direct"
	_ "github.com/goccl/goccl/algorithms/doubletree"
	_ "github.com/goccl/goccl/algorithms/grid"
	_ "github.com/goccl/goccl/algorithms/ring"
	_ "github.com/goccl/goccl/algorithms/tree"
)
