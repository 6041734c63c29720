// Package transporttest is the conformance suite for transports: what an
// implementation of [transport.Endpoint] has to pass before the engine can stand
// on it. A transport's own test is one line:
//
//	func TestTransport(t *testing.T) { transporttest.Test(t, open) }
//
// # Model
//
// The suite is a table of checks. A check opens groups of ranks, runs one script
// per rank, and compares what every rank saw with what the contract says; the
// sentence of the contract that it enforces stands beside it and ends each of
// its failures. Calls are made the way the engine makes them: Enter, the body in
// the role that Enter answered, Complete; after an error Fail and Withdraw.
//
// Ranks leave plain, unsynchronised traces beside the calls (counters, buffers
// that are rewritten as soon as a call has returned). Without the race detector
// the traces have to show the right values; with it they also show that the
// transport orders what it has to order.
//
// Where a check needs something to happen before or after something else, a
// channel says so. Where it needs a rank to be in the middle of a wait, which
// cannot be seen from outside, it yields a random number of times, seeded per
// trial, and makes many trials.
//
// # Concurrency
//
// [Test] runs its checks one after the other. Tests that run in parallel to it
// disturb the check for leaks, which counts goroutines.
//
// # Failure
//
// No check hangs: a rank that fails its part makes the group fail, which wakes
// the others, and a group that makes no progress for some seconds is reported with
// the stacks of all goroutines. A check that has failed is not tried with more
// ranks.
package transporttest
