// Package calls makes calls of collectives whose results it knows: the inputs, the buffers, the
// call, and the results by definition. The conformance suite for kernels makes single calls, and
// random programs make many.
//
// # Model
//
// A [Call] is one call that all ranks of a group make; [New] derives one from a number. Its inputs
// follow from its Salt, the rank and the index, so every process knows the inputs of all ranks.
// Results are compared with a sequential reduction in plain Go. [Kinds] lists the element types.
//
// An [Attempt] is one rank's part: its buffers, with fences around them, the call itself, and what
// is checked afterwards. Inputs that are [Exact] have the same result in any order of operations.
//
// # Concurrency
//
// Several ranks may use a Call at once, and each its own Attempt.
//
// # Failure
//
// A wrong result is a *[WrongError]. Checks return errors that name the element.
package calls
