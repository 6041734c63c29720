// Package steps holds the steps that several built-in kernels share: transfers with a
// missing end, pipelines along a chain, the two phases of a ring all-reduce, and the
// parameter that bounds a message.
//
// # Model
//
// Every function makes one rank's part with the verbs of its [ccl.Call], and uses
// nothing else of the engine. The kernels count the cost.
//
// # Failure
//
// Functions return the errors of their verbs, with the phase and the number of the step.
package steps
