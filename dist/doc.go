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
//	}, dist.WithRanks(4))
//
// # Model
//
// A job is one [Spawn]: a number of ranks, each a goroutine that runs the same
// worker. [InitProcessGroup] connects them to the default process group, as
// ccl.yaml says; collectives then act on the group of the goroutine that calls
// them. A process that never calls Spawn is rank 0 of 1.
//
// A launcher makes the same program's ranks processes: goccl run, torchrun,
// mpirun, mpiexec or srun, on one node. Each process then hosts one rank, the one
// that the launcher's variables say, whether it calls Spawn or not; there are as
// many as the launcher started; and they connect through shared memory. Which
// variables those are, and how the ranks of one job find each other and nobody
// else:
//
//	GOCCL_SHM_NAME, GOCCL_SHM_RANK and GOCCL_SHM_SIZE, which go before all others:
//	    the job's name, a slash and what follows it; the rank; the number of ranks.
//	    With GOCCL_SHM_SECRET jobs of one name do not meet, if each has its own
//	torch's RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, set by hand for one node: where
//	    the address is this node's, the port says which job it is; rank 0 holds it while
//	    the ranks join
//	torchrun's RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
//	    TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT
//	Open MPI's OMPI_COMM_WORLD_RANK, _SIZE and _LOCAL_SIZE, with PMIX_NAMESPACE
//	PMI_RANK and PMI_SIZE of MPICH's and others' mpiexec, with MPI_LOCALNRANKS
//	SLURM_PROCID and SLURM_STEP_NUM_TASKS, with SLURM_JOB_ID and SLURM_STEP_ID
//
// The first of these that are there count. Stray ones of them do not, nor does a
// launcher that started one rank, but for goccl run: with -n 1 there is one.
// [IsLaunched] says what has come of it. Ranks on several nodes, and variables that
// do not say which job it is, are errors.
//
// Which rank a goroutine is:
//
//   - The goroutine of a worker is its rank, and so is one started with [Go].
//   - In a process that hosts exactly one rank, such as one that was launched,
//     every goroutine is that rank.
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
// MPI's, send before recv. Errors about buffers are package ccl's and call an input
// send and an output recv.
//
// [NewGroup] and [Split] make groups of some of the ranks, for WithGroup. A src or
// dst is a rank of the job in all of them, as in torch; [ProcessGroup.GlobalRank] and
// [ProcessGroup.GroupRank] translate.
//
// Every collective has a twin, such as [AllReduceAsync], that begins it and returns
// a [Work]. [Send] and [Recv] carry messages between two ranks, beside collectives;
// [BroadcastObject] and its like carry any value that encoding/gob can
// write. docs/guides/from-torch.md has all of torch's calls, and what stands for them.
//
// # Concurrency
//
// Every function may be called from any goroutine at any time. The collectives
// of one rank on one group follow each other: two that overlap return
// [ErrConcurrentUse] where it is seen. What Async functions have begun is done in
// that order, and before any collective that is called later. Messages may be sent
// and received by several goroutines at once. A warm collective allocates
// nothing, or its Work.
//
// A buffer that a collective writes belongs to one rank. Goroutine ranks must not bring
// the same slice, nor slices that overlap, where one of them is an output: a global
// tensor, which every process of a torch script has for itself, all goroutines of a Go
// program have in common. All ranks then get a [*MismatchError] with the field "buffers",
// which names those that did, and no rank has written anything. Slices that ranks only
// read may be shared. Three things are not found: an input that was copied before the
// call began, as short ones are, while it is another rank's output (the call takes what was
// there before); of tensors that travel together in one AllReduceCoalesced, all but the
// first; and what messages write.
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
// group: its peers get an [*AbortedError] that names it, goroutine ranks also if it has
// left by a deferred DestroyProcessGroup a moment before. One that returns nil
// has left, once what it had begun and not waited for has ended: peers that still
// need it get a [*PeerLostError]. Spawn waits for
// all workers and returns a [*RankError] for each that failed, the root cause
// first; in a launched process that is the one rank it hosts. A worker that is stuck in
// code of its own is left behind, and is a [*StuckError]. A panic in a
// goroutine started with Go ends the process, as it does in any goroutine.
//
// A group that NewGroup or Split has made fails by itself, the others live on;
// errors of its calls count ranks as the group does, and
// say which ranks of the job those are. All groups of a rank end with
// its default group, and with its worker.
package dist
