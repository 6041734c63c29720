// Package ccltest is the conformance suite for algorithms. A configuration should name an
// algorithm only after its kernels have passed it. An author's whole test is three lines:
//
//	func TestConformance(t *testing.T) { ccltest.Test(t, ring.Algorithm) }
//	func FuzzKernels(f *testing.F)     { ccltest.Fuzz(f, ring.Algorithm) }
//	func TestOrders(t *testing.T)      { ccltest.Seeds(t, ring.Algorithm) }
//
// # Model
//
// The suite is a table of checks. A check takes one kernel, connects groups of ranks in
// several media, makes the same calls on all ranks, and compares what every rank saw with
// one rule.
//
// The media differ in what kernels may rely on by mistake:
//
//	poll      goroutines that share memory; each runs its own part
//	park      goroutines that sleep; the last to arrive runs the others' parts
//	arena     processes' shared memory, on the heap: messages and views are copied
//	smallest  like arena, with messages of 16 bytes and views of 144: messages and
//	          inputs arrive in pieces
//
// Each of them also exists with seeded delays before every action of a rank, such as
// poll+jitter.
//
// Results are compared with a sequential reduction in plain Go. Where they must not depend
// on the order of operations, the inputs are integers, or floats that need no rounding.
// Where they may, ranks, runs and media are compared with each other.
//
// The calls use all element types and all operations, including user-defined ones; lengths
// around the number of ranks, and around those at which transport, engine or kernel switch
// paths; all roots; blocks of equal length, with and without counts, and of unequal lengths,
// including empty blocks and one block that holds everything. Result makes all of these calls in
// one medium and some of them in the others. Other checks take samples, which change with the
// medium and the number of ranks. A kernel takes a second or two of processor time.
// docs/reference/coverage.md lists the calls made for the algorithms of this repository.
//
// # Checks
//
// They run in this order:
//
//	Validate, Completes, Messages, Supports, Result, Pieces, Guards, InPlace,
//	Jitter, SameBits, Cost, Cancel, Leave, State, Leaks, Allocs, Many
//
// Each assumes that the kernel keeps the rules of the checks before it, so the first failure
// names the broken rule. docs/reference/coverage.md has the rules.
//
// # Reading a failure
//
//	--- FAIL: TestConformance/broadcast/Messages/poll/ranks=2
//	    rank 1 of 2: broadcast of float32, 1 elements from root 0: ccl: broadcast by mine,
//	    call 1, rank 1: send to rank 0 (Send at mine.go:41): protocol error with rank 0: it
//	    ended the call while this rank waits to exchange a message with it
//	      rank 0 has returned from its kernel
//	      rank 1 waits for rank 0 to take a message: Send at mine.go:41
//	    medium: poll: goroutines that share memory; each runs its own part
//	    rule: Messages: every message is received: by the rank it is sent to, ...
//	    again: go test -run '^TestConformance$/^broadcast$/^Messages$/^poll$/^ranks=2$' example.org/m
//	    messages of the call, by rank: step, verb, elements of which buffer
//	      rank 0
//	         1  Send            in[0:1] to 1
//	      rank 1
//	         1  Recv            out[0:1] from 0
//	         2  Send            out[0:1] to 0 (NOT RECEIVED)
//	    picture: the same command with -artifacts draws these messages
//
// The name of the test contains the kernel, the check, the medium and the number of ranks. A
// failure begins with the rank that saw it and its call. If messages missed each other, it
// lists what each rank was doing at that time, and by which line of the kernel; for a panic,
// the lines of the kernel that led to it. A kernel whose goroutines use its Call at the same time
// is told so. Then follow the broken rule and the command that
// runs exactly this case: inputs and delays are the same in every run. If the case depends on
// timing it may take several runs, -count=100. If several ranks fail, a rank that panicked or
// returned an error of its own is named before those that only saw what followed; otherwise
// the named rank may differ from run to run.
//
// If a result is wrong, the suite repeats the call with the inputs of one rank at a time, as a
// sum, and lists where an input is missing, is there twice, or comes from another place:
//
//	rank 1 of 3: all_reduce of float32, sum of 1 elements: element 0 is 6368 instead of 28287, ...
//	inputs, in all_reduce of float32, sum of 6 elements:
//	  on rank 1, elements 0 to 5: the input of rank 2 is missing
//
// Last come the messages of the failed call. Steps are those of ccl.Cost. in, out and scratch
// are the rank's input, output and scratch memory; a buffer that is both is called in. Long
// lists are cut. With -artifacts the suite draws these messages as an SVG, the ranks from top
// to bottom and the steps from left to right, to the file that the failure names.
//
// The algorithm is configured under its own name, or as "subject" if ccl.yaml could not
// have an entry of that name.
//
// The command consists of names, so that -run also takes fewer of them:
//
//	go test -run TestConformance/broadcast           one kernel
//	go test -run TestConformance/broadcast/Messages  one check
//	go test -run TestConformance/.*/Cost             one check of all kernels
//
// If several checks of a kernel fail, they often have one reason: begin with the first.
// With -v, a check that does not apply logs why, and a kernel that passes what was not reached.
// With -short and with -race the suite makes fewer calls, above all on many ranks, and no long
// ones, and with -short its groups have at most 8 ranks, and 33 in Many:
// docs/reference/coverage.md says which. Allocs runs only without -race.
//
// # Fuzzing
//
// In [Fuzz] the fuzzer chooses the calls; go test prints the command that repeats a
// failure.
//
//	go test -run '^$' -fuzz FuzzKernels -fuzztime 1m
//
// # Limits
//
// The suite does not see:
//
//   - What kernels do with inputs longer than 600 KiB and than their parameters of type
//     ccl.ByteSize up to 4 MiB. [Params] brings switching points closer.
//   - Without [Ranks] and [Extents], what they do on more than 16 ranks, other than 33, or with
//     other extents of a grid than those closest to a square.
//   - Groups of one rank, and calls that move nothing (their Shape's Total is 0): for them
//     no kernel ever runs.
//   - Kernels that are TwoLevels or Native: no medium has several nodes, or a transport with
//     collectives of its own.
//   - Data races that have not yet led to a wrong result: run it, and [Seeds], with -race as well.
//   - Needless reads, such as of memory next to a buffer.
//   - State that shows only after many calls.
//   - Whether results are the same on other machines: it compares within one process.
//   - How fast a kernel is. Its Cost is counted, not timed.
//
// # Concurrency
//
// [Test], [Fuzz] and [Seeds] run their checks one after the other. Tests that run in parallel to
// them disturb the checks that count goroutines and allocations, and SameBits changes
// GOMAXPROCS for a while. None reads the environment.
//
// # Failure
//
// A check ends at its first failure. The next checks still run, unless the failed one is
// one of the first five, on which they depend, or the kernel hangs. A hang in a verb costs one
// timeout of 5 seconds. A kernel that waits for something other than its verbs, or never ends,
// cannot be interrupted: after 10 seconds in which no call ends the suite reports it, with the
// stacks of the goroutines in the kernel, and continues without it. Without -fuzz, [Fuzz] skips the
// other calls of a kernel that has hung, and says how many. Equal stacks are shown once, with the
// number of their goroutines, also those of a leak.
package ccltest
