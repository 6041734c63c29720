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
// configured in ccl.yaml; collectives then act on the group of the calling goroutine's rank.
// A process that never calls Spawn is rank 0 of 1.
//
// A launcher (goccl run, torchrun, mpirun, mpiexec or srun) starts the ranks of the same
// program as processes. Each process then hosts one rank, whether it calls Spawn or not;
// the launcher's environment variables give the rank and the number of ranks. Ranks of one
// node connect through shared memory; ranks of several nodes by TCP, with MASTER_ADDR, MASTER_PORT
// and a secret, or through MPI, if the program imports github.com/goccl/goccl/transport/mpi and an
// MPI launcher has started them.
//
// The first launcher whose variables are all set wins: goccl run (GOCCL_SHM_*), torchrun, torch's
// env://, Open MPI, PMI, Slurm; docs/reference/processes.md lists them. [IsLaunched] reports the
// result. Variables that do not identify the job are errors, and so are ranks on several nodes,
// unless a transport of the program is for them.
//
// Which rank a goroutine is:
//
//   - The goroutine of a worker is its rank, and so is one started with [Go].
//   - In a process that hosts exactly one rank, such as one that a launcher started,
//     every goroutine is that rank.
//   - Any other goroutine has no rank. Collectives return [ErrUnbound] there unless
//     [WithGroup] gives them a group: a pool of goroutines started by one rank must
//     not act for another.
//   - [GetRank] nevertheless returns a rank there: the rank of the worker that started the
//     goroutine, found by the profiler labels that goroutines inherit, otherwise 0.
//     [GetWorldSize] and [GetBackend] return the same for all ranks of a job. While
//     several jobs run at once, a goroutine without such labels gets ErrUnbound from
//     all three.
//
// CPU profiles show the rank as the label ccl.rank. A worker that calls pprof.Do keeps
// its rank; goroutines started inside have other labels, so GetRank cannot find their
// rank.
//
// Every call also has an explicit form: [Default] returns the caller's group, and
// WithGroup passes it to a call. Package ccl uses no goroutine-local state at all.
//
// Buffers come in torch's order, output before input; package ccl has MPI's order,
// send before recv.
//
// [NewGroup] and [Split] make groups of some of the ranks, for WithGroup. As in torch,
// src and dst are global ranks in every group; [ProcessGroup.GlobalRank] and
// [ProcessGroup.GroupRank] translate.
//
// Every collective has an asynchronous form, such as [AllReduceAsync], that returns a
// [Work]. [Send] and [Recv] exchange messages between two ranks, independently of
// collectives; [BroadcastObject] and its siblings transfer any value that encoding/gob
// can write. docs/guides/from-torch.md maps torch's calls to these.
//
// # Concurrency
//
// Every function may be called from any goroutine at any time. The collectives
// of one rank on one group run one after the other: two that overlap return
// [ErrConcurrentUse] if the overlap is detected. Async calls run in the order in which
// they were started, and before any collective called later. Several goroutines may
// send and receive messages at once. A warm synchronous collective does not allocate;
// an asynchronous one allocates its Work.
//
// A buffer that a collective writes belongs to one rank. Goroutine ranks must not pass
// the same slice, or overlapping slices, if one of them is an output: a global tensor
// exists once per process in a torch script, but all goroutines of a Go program share
// it. All ranks then get a [*MismatchError] with the field "buffers" that names the
// ranks, and no rank has written anything. Ranks may share slices that are only read.
// Three overlaps are not detected: an input that was copied before the call started, as
// short ones are, and that is another rank's output (the call uses the earlier
// contents); overlaps of tensors that one AllReduceCoalesced sends together, except the
// first of them; and overlaps with buffers of messages.
//
// # Failure
//
// Errors are typed; errors.Is and errors.As find the types and values that this package lists;
// docs/reference/errors.md has them in a table. The package does not panic on bad input, print,
// or end the process.
//
// InitProcessGroup succeeds on all ranks or on none, and can be retried. A call that
// all ranks reject for its arguments leaves the group intact. After any other failure
// every call on the group returns the first cause at once, on all ranks;
// DestroyProcessGroup and a new InitProcessGroup recover.
//
// A worker that returns an error, panics or calls runtime.Goexit fails its group: its
// peers get an [*AbortedError] that names it; goroutine ranks get it even if a deferred
// DestroyProcessGroup ran a moment before. A worker that returns nil leaves the group
// after its asynchronous calls have ended: peers that still need it get a
// [*PeerLostError].
//
// Spawn waits for all workers, except those stuck in their own code ([*StuckError]), and
// returns a [*RankError] for each that failed, the root cause first.
//
// A group made by NewGroup or Split fails alone; the other groups continue. Errors of
// its calls number ranks as the group does, and add the global ranks. All groups of a
// rank end with its default group, and with its worker.
package dist
