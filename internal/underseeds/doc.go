// Package underseeds runs a program of a test under many seeds.
//
// # Model
//
// A program is drawn from its seed. With the build tag interleave, package interleave also chooses
// the order of all its steps by the seed. Without the tag the program runs in the order of the
// machine.
//
// # Concurrency
//
// One program runs at a time. Its goroutines are those of package interleave.
//
// # Failure
//
// Find returns the error of the first program that fails, with its seed and the command that runs
// it again.
package underseeds
