// Package dist is the front door of goccl: torch.distributed's calls for Go.
//
//	err := dist.Spawn(func(ctx context.Context, rank int) error {
//		if err := dist.InitProcessGroup("ccl"); err != nil {
//			return err
//		}
//		grads := []float32{float32(rank), 1}
//		if err := dist.AllReduce(grads, dist.Avg); err != nil {
//			return err
//		}
//		return dist.DestroyProcessGroup()
//	}, dist.Ranks(4))
//
// # Model
//
// A job is one [Spawn]: a number of ranks, each a goroutine that runs the same
// worker. [InitProcessGroup] connects them to the default process group, as
// ccl.yaml says; collectives then act on the group of the goroutine that calls
// them. A process that never calls Spawn is rank 0 of 1.
//
// Which rank a goroutine is:
//
//   - The goroutine of a worker is its rank, and so is one started with [Go].
//   - In a process that hosts exactly one rank, every goroutine is that rank.
//   - Any other goroutine has no rank. Collectives return [ErrUnbound] there,
//     unless they are given a group by [WithGroup]: a pool of goroutines that
//     one rank has started must not act for another. [GetRank] answers such a
//     goroutine all the same: with the rank whose worker started it, which it
//     knows by the profiler labels that goroutines inherit, and else with 0;
//     [GetWorldSize] and [GetBackend] have one answer for all ranks. Where
//     several jobs live at once, a goroutine without a rank gets ErrUnbound from
//     these as well.
//
// CPU profiles show the rank as the label ccl.rank. A worker that calls
// pprof.Do changes neither its own rank nor that of its group; goroutines
// started inside have other labels and are strangers to GetRank.
//
// The explicit form stands beside the magic one everywhere: [Default] returns
// the caller's group, WithGroup hands it to a call, and package ccl does
// without goroutine-local state altogether.
//
// Buffers come in torch's order, output before input; package ccl has them in
// MPI's, send before recv.
//
// # Concurrency
//
// Every function may be called from any goroutine at any time. The collectives
// of one rank on one group follow each other: two that overlap return
// [ErrConcurrentUse] where it is seen. A warm collective allocates nothing.
//
// # Failure
//
// Errors are typed; errors.Is and errors.As find the types and values that this
// package lists. Nothing panics on bad input, prints, or ends the process.
//
// InitProcessGroup succeeds on all ranks or on none, and afterwards can be
// tried again. A call that is refused for its arguments leaves the group as it
// is if all ranks refuse it alike. After any other failure every call on the
// group returns the first cause at once, on all ranks; DestroyProcessGroup and
// a new InitProcessGroup recover.
//
// A worker that returns an error, panics or leaves by runtime.Goexit fails its
// group: its peers get an [*AbortedError] that names it. One that returns nil
// has left: peers that still need it get a [*PeerLostError]. Spawn waits for
// all workers and returns a [*RankError] for each that failed, the root cause
// first. A panic in a goroutine started with Go ends the process, as it does in
// any goroutine.
package dist
