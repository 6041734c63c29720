// Package ccl is the engine of collectives and the contract for algorithms.
//
// It has two kinds of users. Programs that prefer explicit handles to the
// goroutine-bound calls of package dist make a [Communicator] with [New] and call
// [AllReduce] and the other functions of this package on it. Designers of algorithms
// describe one as an [Algorithm] of kernels, [Register] it, and name it in ccl.yaml;
// the conformance suite is package ccl/ccltest.
//
// # Model
//
// The ranks of a group make the same calls in the same order. A call goes through
// four steps. The rank checks its own arguments; what is wrong with them is an error
// at once, and the call's number is consumed. It chooses the kernel, by an option of
// the call, the configured entry or the first rule that matches (see [Selector]).
// All ranks synchronise and compare fingerprints, of what must be equal everywhere:
// the collective, type, operation, count, root and algorithm. Only then does the
// kernel run, which moves and folds data with the verbs of a [Call].
//
// The reductions are [AllReduce], [AllReduceCoalesced] for many tensors, [Reduce],
// [ReduceScatter], [Scan] and [ExScan]; what moves data are [AllGather], [Broadcast],
// [Gather], [Scatter] and [AllToAll]; V in a name stands for blocks of unlike lengths.
// Each has a twin, such as [AllReduceAsync], that begins it and returns a [Work].
// Buffers are slices of any [Element]; operations are [Sum] and its like, [PremulSum],
// and what [NewOp] makes. Ranks are those of the group, and send comes before recv, as
// in MPI.
//
// [Send], [Recv], [SendRecv], [Isend] and [Irecv] carry messages between two ranks. They
// are no calls in this sense: nobody else takes part, and the receiver compares tag,
// type and length. [Communicator.Split] and [Communicator.NewGroup] make groups of some
// of the ranks, with calls, messages and a failure of their own.
//
// A kernel exchanges messages ([Call.SendRecv] and its relatives) or looks at all
// ranks' inputs through a window ([Call.View]). It says what it costs, and the suite
// measures that. Who writes one needs [Algorithm], [Kernel], [Call], [Buffer], [Shape],
// [Cost], [ParamsOf] and [View]; docs/guides/writing-an-algorithm.md leads through them.
//
// Package ccl/config explains before a call which kernel will run, and
// [Communicator.LastChoice] tells which one ran.
//
// Memory that all ranks of a node see is made by [CreateSharedRegion], to hold data
// once that all read, and by [Alloc], for buffers that collectives need not copy
// between processes.
//
// Results of reductions are the same bits on all ranks and in all runs. Which bits,
// the algorithm's documentation says.
//
// # Concurrency
//
// A Communicator belongs to one rank, whose calls on it follow each other. What was
// begun is done in that order, by a goroutine that is there while there is any, and
// before any call that is made later. Messages may be sent and received by several
// goroutines at once, also while a call runs. Calls on different communicators are
// independent. Registries are safe for concurrent use.
//
// # Failure
//
// A group is fail-stop: the first failure is everybody's, and every later call returns
// it. [CollectiveFailedError] wraps a [MismatchError], [TimeoutError], [PeerLostError],
// [AbortedError], [KernelPanicError] or a context's error; errors.As and errors.Is find
// them. Refused arguments are [InvalidBufferSizeError], [InvalidRootError],
// [InvalidArgumentError], [ErrNotImplemented], or a context that had ended before the
// call: if all ranks refuse a call, the group lives on; if some do, the others get
// MismatchError with the field "arguments", which has the errors of those. A call that was
// begun has all its errors in its Work. With debug in ccl.yaml it is refused if its input was
// changed before its turn.
//
// After a failure other than a mismatch the contents of outputs are unspecified. When a
// call has returned, whatever it returned, no rank touches its buffers any more; only a
// kernel that never returns is left behind, after a second timeout. Without
// a cancelled context, a timeout or a panic, a call that succeeds on one rank succeeds on
// all; with one, the last call may be torn, and nil means that one's own output is right.
//
// A send or a receive that fails for itself, for want of a peer or of time, leaves the
// group alone, unless its message had begun to move (see [Send]). The failure of a group
// ends its messages as well, and no other group.
package ccl
