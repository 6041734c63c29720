// Package transporttest is the conformance suite for transports: an implementation of
// [transport.Endpoint] has to pass it before the engine can use it. A transport's own test is
// one line:
//
//	func TestTransport(t *testing.T) { transporttest.Test(t, open) }
//
// # Model
//
// The suite is a table of checks. A check opens groups of ranks and runs one script per rank,
// which compares what the rank sees with the contract. A failure ends with the rule of the
// contract that was broken. Scripts make calls as the engine does: Enter, the body in the role
// that Enter returned, Complete; after an error Fail and Withdraw.
//
// The checks Interrupt and Reached are a table of their own. Every event that can end a wait
// (a failure, a cancelled context, a deadline, a timeout, a departure, a refusal, Close) meets
// every wait of the contract (Enter, Complete, Next, Drain, Put, Flip, Region, Rest, Group):
// before the wait, during it, and after the wait's condition has become true. A failure names
// the event, the wait and the rank:
//
//	departure meets Next, in it: rank 0 of 3: no error instead of *PeerLostError for rank 2
//
// Ranks leave plain, unsynchronised traces beside the calls: counters, and buffers that are
// rewritten as soon as a call has returned. Without the race detector the traces must have the
// right values; with it they also show that the transport orders what it has to order.
//
// If one thing must happen before another, a channel orders them. If a rank must be in the
// middle of a wait, which is not visible from outside, the script yields a random number of
// times, seeded per trial, and makes many trials.
//
// # Concurrency
//
// [Test] runs its checks one after the other. Tests that run in parallel to it disturb the
// check for leaks, which counts goroutines.
//
// # Failure
//
// No check hangs. A rank whose script fails makes the group fail, which wakes the other ranks. A
// group that makes no progress for some seconds is reported with the stacks of all goroutines.
// A check that has failed is not repeated with more ranks.
package transporttest
