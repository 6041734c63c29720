// Package ccltest is the conformance suite for algorithms: what the kernels of a
// [ccl.Algorithm] have to pass before a configuration should name them. An
// author's whole test is two lines:
//
//	func TestConformance(t *testing.T) { ccltest.Test(t, ring.Algorithm) }
//	func FuzzKernels(f *testing.F)     { ccltest.Fuzz(f, ring.Algorithm) }
//
// # Model
//
// The suite is a table of checks. A check takes one kernel, connects groups of
// ranks in several worlds, lets all ranks make the same calls, and compares what
// every rank saw with one rule.
//
// The worlds are chosen for what kernels rely on without saying so:
//
//	poll      goroutines that share memory, each running its own part
//	park      goroutines that sleep; the last to arrive runs the others' parts
//	arena     nothing shared but an arena: messages and windows are copied
//	smallest  like arena, with messages of 16 bytes and windows of 144: a message
//	          arrives in parts, and a window shows its inputs bit by bit
//
// and each of them once more with seeded delays, as in poll+jitter, before everything
// a rank does.
//
// Results are compared with a sequential fold in plain Go. Where they must not
// depend on the order of operations the inputs are integers, or floats that need
// no rounding; where they do, ranks, runs and worlds are compared with each other.
//
// The calls are of all element types and all operations, those of users among them, at
// lengths around the number of ranks and around those at which transport, engine or
// kernel change their ways; with all roots; of blocks that are alike, in both forms that
// such calls have, or unlike, empty, or all in one. Result makes all of them in one
// world, and a part in others; other checks take samples, which change with the world
// and the number of ranks. A kernel takes a second or two of a processor. What there is
// of each in this repository is in docs/reference/coverage.md.
//
// # Checks
//
// They are run in this order. Each takes a kernel to keep the rules before its own,
// so that the first to fail is the one whose rule was broken.
//
//	Validate  an algorithm has a name, documentation, valid default parameters, and
//	          kernels that are documented, declare their Cost and support something
//	Completes a call that the kernel does not refuse ends without an error and without
//	          a panic
//	Messages  every message is received: by the rank it is sent to, in the same call,
//	          in the order and at the length it is sent; and no cycle of ranks waits
//	          for each other, since a sender waits until its message has been taken
//	          (C16)
//	Supports  a call of a shape that a kernel does not support is refused with
//	          ErrNotImplemented, on all ranks, before anything moves, and the group
//	          lives on; a call of any other shape is not refused (S4.13, C2)
//	Result    every rank gets the result of the sequential definition, whatever the
//	          type, operation, size, root and number of ranks (C21, C23)
//	Pieces    the result is the same where a window shows the inputs bit by bit and
//	          messages arrive in parts (C16)
//	Guards    a kernel writes to its output and nowhere else: not to inputs, not
//	          around buffers, which are aligned to their elements and no more, and not
//	          to the gaps between blocks, which may be in any order (S0.3, C14, C15)
//	InPlace   the result is the same whether all ranks work in place, none, or some
//	          (C25)
//	Jitter    the result does not depend on timing (S1.7)
//	SameBits  the result is the same bits on all ranks, in all runs and worlds, in
//	          place or not, whatever the timing and GOMAXPROCS (S0.15, S2.13, C21)
//	Cost      Cost declares exactly the steps and bytes that the kernel takes, where
//	          blocks are alike
//	Cancel    a call whose context has ended is refused; a wait that is cancelled or
//	          times out ends the call on all ranks, with an error that names who gave
//	          up or who is missing (C17, C18, S2.23)
//	Leave     when a rank aborts, leaves or is cancelled, at whatever step, every
//	          other rank returns the right result or an error that names that rank; a
//	          broadcast's root keeps what it had; and from then on nobody touches
//	          their buffers (S1.12, S1.19)
//	State     a kernel keeps no state outside of its Call: calls of different groups
//	          do not disturb each other, and a call on the buffers of another is a new
//	          call
//	Leaks     when a group is closed nothing of it is left running
//	Allocs    a call of a kind that was made before allocates nothing (S0.2)
//
// In brackets are the numbers of the requirements that a rule comes from.
//
// # Reading a failure
//
//	--- FAIL: TestConformance/broadcast/Messages/poll/ranks=2
//	    rank 1 of 2: broadcast of float32, 1 elements from root 0: ccl: broadcast by mine,
//	    call 1, rank 1: send to rank 0: protocol error with rank 0: it ended the call while
//	    this rank waits to exchange a message with it
//	      rank 0 has returned from its kernel
//	      rank 1 waits for rank 0 to take a message
//	    world: poll: goroutines that share memory, each running its own part
//	    rule: Messages: every message is received: by the rank it is sent to, ...
//	    again: go test -run '^TestConformance$/^broadcast$/^Messages$/^poll$/^ranks=2$' example.com/mine
//
// The name of the test says which kernel, check, world and number of ranks it was. A
// failure begins with the rank that saw it and the call that it was in; if messages
// missed each other it says what each rank was about at that time, and of a panic
// which lines of the kernel led to it. The rule is the one that was broken, and the
// command runs just that case: inputs and delays are the same in every run. Where the
// case depends on timing it may take several runs, -count=100. Where several ranks
// fail, which of them is named may differ from run to run; one that panicked or
// returned an error of its own comes before those that only saw what followed.
//
// The algorithm is configured under its own name, or as "subject" where ccl.yaml could
// not have an entry of that name.
//
// The command is made of names, so that -run takes fewer of them too:
//
//	go test -run TestConformance/broadcast           one kernel
//	go test -run TestConformance/broadcast/Messages  one check
//	go test -run TestConformance/.*/Cost             one check of all kernels
//
// Where several checks of a kernel fail there is often one reason: begin with the
// first. With -v, a check that does not apply says why. With -short and with -race there are
// fewer calls, and no long ones; Allocs is left to runs without -race.
//
// # Fuzzing
//
// [Fuzz] makes calls that nobody has thought of; go test prints how to repeat the one
// that fails. What can be fuzzed is what a call is made of: see [Fuzz].
//
//	go test -run '^$' -fuzz FuzzKernels -fuzztime 1m
//
// # What the suite cannot see
//
//   - What kernels do on more than 16 ranks or with inputs longer than 600 KiB, and
//     with other extents of a grid than those closest to a square. Parameters bring
//     switching points closer: see [Params].
//   - Groups of one rank, and calls that move nothing (their Shape's Total is 0): there
//     no kernel runs, in the suite or elsewhere.
//   - Data races that have not yet led to a wrong result: run it with -race as well.
//   - What a kernel reads without need, such as memory next to its buffers.
//   - State that it takes many calls to see.
//   - Whether results are the same on other machines: it compares within one process.
//   - How fast a kernel is. Its Cost is counted, not timed.
//
// # Concurrency
//
// [Test] and [Fuzz] run their checks one after the other. Tests that run in parallel
// to them disturb those that count goroutines and allocations, and SameBits changes
// GOMAXPROCS for a while. Neither reads the environment.
//
// # Failure
//
// A check ends at its first failure; the checks after it are run all the same, unless
// it is one of the first five, on which they stand, or the kernel hangs. A hang in a
// verb costs one timeout of 5 seconds. A kernel that waits for something other than its
// verbs, or never ends, cannot be interrupted: after 10 seconds in which no call ends
// the suite reports it, with the stacks of the goroutines that are in the kernel, and
// goes on without it.
package ccltest
