// Package ccltest is the conformance suite for algorithms: what the kernels of a
// [ccl.Algorithm] have to pass before a configuration should name them. An
// author's whole test is one line:
//
//	func TestConformance(t *testing.T) { ccltest.Test(t, ring.Algorithm) }
//
// # Model
//
// The suite is a table of checks. A check takes one kernel, connects groups of
// ranks in several worlds, lets all ranks make the same calls, and compares what
// every rank saw with one rule. The rule ends each of the check's failures, with
// the command that repeats just that case.
//
// The worlds are chosen for what kernels rely on without saying so:
//
//	poll      goroutines that share memory, each running its own part
//	park      goroutines that sleep; the last to arrive runs the others' parts
//	arena     nothing shared but an arena: messages and windows are copied
//	smallest  the same with messages of 16 bytes and windows of 144: a message
//	          waits for its receiver, and a window shows its inputs bit by bit
//
// and each of them once more with seeded delays before everything a rank does.
//
// Results are compared with a sequential fold in plain Go. Where they must not
// depend on the order of operations the inputs are integers, or floats that need
// no rounding; where they do, ranks, runs and worlds are compared with each other.
//
// # Concurrency
//
// [Test] runs its checks one after the other. Tests that run in parallel to it
// disturb those that count goroutines and allocations.
//
// # Failure
//
// A check ends at its first failure. A kernel that hangs costs one timeout of a
// few seconds and is not checked any further. A kernel that waits for something
// other than its verbs cannot be interrupted: after a minute without progress the
// suite reports it, with the stacks of all goroutines, and goes on without it.
package ccltest
