// Package ccl is the engine of collectives and the contract for algorithms.
//
// It has two kinds of users. Programs that prefer explicit handles to package dist make a
// [Communicator] with [New] and pass it to [AllReduce] and the other functions of this package.
// Authors of algorithms describe one as an [Algorithm] of kernels, [Register] it, and name it in
// ccl.yaml; package ccl/ccltest is the conformance suite.
//
// # Model
//
// The ranks of a group make the same calls in the same order. A call has four steps:
//
//  1. The rank checks its own arguments. It rejects invalid ones at once; the call's number is
//     consumed.
//  2. It chooses the kernel: by an option of the call, the configured entry, or the first rule
//     that matches (see [Selector]).
//  3. All ranks synchronise and compare fingerprints: the collective, type, operation, count, root
//     and algorithm.
//  4. The kernel moves and reduces data with the verbs of a [Call].
//
// The reductions are [AllReduce], [AllReduceCoalesced] for many tensors, [Reduce], [ReduceScatter],
// [Scan] and [ExScan]. [AllGather], [Broadcast], [Gather], [Scatter] and [AllToAll] move data.
// Functions with a V in their name take blocks of different lengths. The option [WithWork] starts a
// call and returns at once; its [Work] tells when it has ended. Buffers are slices of any
// [Element]. Operations are [Sum] and the other constants, [PremulSum], and those that [NewOp]
// makes. Ranks are group ranks. send comes before recv, as in MPI.
//
// [Send], [Recv], [SendRecv], [Isend] and [Irecv] carry messages between two ranks. Messages are
// not calls: no other rank takes part, and the receiver compares tag, length and type.
// [Communicator.Split] and [Communicator.NewGroup] make groups of some of the ranks, with calls,
// messages and a failure of their own.
//
// A kernel exchanges messages ([Call.SendRecv] and its relatives) or reads the inputs of all ranks
// through a [View]. It declares its cost, which the conformance suite measures. Kernel authors need
// [Algorithm], [Kernel], [Call], [Buffer], [Shape], [Cost], [ParamsOf] and [View];
// docs/guides/writing-an-algorithm.md introduces them.
//
// Package ccl/config explains before a call which kernel will run;
// [Communicator.LastChoice] returns the kernel that ran last. Package ccl/agree compares what ranks
// have, for packages whose operations take several calls.
//
// [CreateSharedRegion] makes memory that exists once on a node and that all ranks read. [Alloc]
// makes buffers that collectives between processes need not copy.
//
// Results of reductions have the same bits on all ranks and in all runs. Each algorithm documents
// its order of reduction, which determines the bits. Where a kernel calls the library of the
// transport (Kernel.Native), the order is the library's, and from the moment in which all ranks
// have entered the call no context, timeout or failure interrupts it.
//
// # Concurrency
//
// A Communicator belongs to one rank, which makes one call at a time. One goroutine, started on
// demand, executes asynchronous calls in order; a synchronous call first waits for them. Several
// goroutines may send and receive messages at once, also while a call runs. Calls on different
// communicators are independent. Any goroutine may call [Register].
//
// # Failure
//
// A group is fail-stop: the first failure is the failure of all ranks, and every later call returns
// it. [CollectiveFailedError] wraps a [MismatchError], [transport.TimeoutError],
// [transport.PeerLostError], [transport.AbortedError], [KernelPanicError] or the error of a
// context; errors.As and errors.Is find them.
//
// Rejected arguments are [InvalidBufferSizeError], [InvalidRootError], [InvalidArgumentError],
// [ErrNotImplemented], or the error of a context that had ended before the call. If all ranks
// reject a call, the group lives on. If only some do, the others get MismatchError with the field
// "arguments" and the errors of those ranks. An asynchronous call returns all its errors through
// its Work; with debug in ccl.yaml it is also rejected if its input changed before it started.
//
// After a failure other than a mismatch the contents of outputs are unspecified. Once a call has
// returned, with or without an error, no rank touches its buffers any more. The exception is a
// kernel that hangs: after a second timeout the call returns without it.
//
// A call that succeeds on one rank succeeds on all. A nil error means only that this rank's output
// is correct in a call that a context, a timeout, Close or Abort ends while not all ranks are
// through, and
//
//   - that is a barrier, or whose inputs travel with the synchronisation: short ones and, between
//     processes, inputs of up to 512 KiB that are not of Alloc, except in all-reduces and reduces;
//   - that has two levels (see [Call.Node]) or is the transport's own;
//   - in which a process dies, or a kernel hangs until the second timeout.
//
// A send or receive that fails on its own, because its peer is gone or its time is up, does not
// fail the group, unless its message had started to move (see [Send]). The failure of a group ends
// its messages, and affects no other group.
package ccl
