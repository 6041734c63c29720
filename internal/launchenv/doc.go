// Package launchenv detects whether a launcher started this process as one of the
// ranks of a job, which rank, and of which job. It reads the environment variables that
// launchers set.
//
// # Model
//
// [Detect] looks for goccl run, torchrun, env:// (variables set by hand for torch's init
// method of that name), Open MPI, PMI (mpiexec of MPICH and Intel, srun --mpi=pmi2) and
// Slurm's srun, in this order. The first whose variables are set wins; the list launchers
// has them. So variables set by hand or by an inner launcher override an outer launcher's,
// unless the inner launcher comes later.
//
// A process is no rank of a job, and Detect returns nil, if
//
//   - none of these are set,
//   - a launcher's set is incomplete (except the first one's): a stray WORLD_SIZE,
//     or the shell of sbatch, which has SLURM_PROCID and SLURM_NTASKS and is one
//     process,
//   - the launcher started one rank: mpirun -n 1. Programs without ranks are started like
//     that, and srun starts every program on a cluster. goccl run -n 1 is an exception: its
//     variables are never set by accident, and comparisons over the number of ranks start
//     at one.
//
// The ranks of a job find each other by its key. It is made of the launcher's variables
// that are equal for all ranks and different for every other job:
//
//	goccl run   the name; the secret, which goccl run makes for each job, keeps jobs of one
//	            name apart. Ranks started by hand need none if the name is the job's own
//	env://      MASTER_PORT and the network namespace, if MASTER_ADDR is an address of
//	            this node. Rank 0 holds the port while the job joins, so that rank 0 of a
//	            second job fails; the second job's other ranks cannot be recognised
//	torchrun    TORCHELASTIC_RUN_ID, MASTER_ADDR, MASTER_PORT,
//	            TORCHELASTIC_RESTART_COUNT and the network namespace. Without
//	            --standalone the id is "none" and the port always the same; then only the
//	            port, which torchrun holds, prevents two jobs at once, and only within one
//	            network namespace: containers may share /dev/shm but not the network
//	Open MPI    PMIX_NAMESPACE, and the address of mpirun's own server in
//	            PMIX_SERVER_URI2, 21, 3, 4, 41 and so on, with the network namespace:
//	            version 4 makes PMIX_NAMESPACE from 16 bits of a hash, and version 5
//	            from a host name and a process id. Without an address the pid
//	            namespace is used
//	PMI         PMI_JOBID with SLURM_RESTART_COUNT if srun sets it; and the
//	            hydra_pmi_proxy among the ancestors of the process, by pid, start time
//	            and pid namespace. Each job has one on each node. MPICH has no variable
//	            that identifies the job: its name is available only through the PMI
//	            protocol, which would make the process an MPI one
//	Slurm       SLURM_JOB_ID, SLURM_STEP_ID, SLURM_RESTART_COUNT
//
// The secret of a job is known to its ranks only. It is in GOCCL_SECRET, or in the file that
// GOCCL_SECRET_FILE names; for goccl run, or by hand like it, also in GOCCL_SHM_SECRET. Ranks of
// several nodes need one ([ReadSecret]).
//
// # Reports
//
// A rank that fails reports the error to its launcher. The launcher names a file for it,
// a different one for every rank, in an existing directory:
//
//	goccl run   GOCCL_ERROR_FILE: one [Report] as JSON
//	torchrun    TORCHELASTIC_ERROR_FILE: the format of torch's own ErrorHandler. torchrun
//	            takes the earliest report, in seconds, for the cause; so a consequence is
//	            dated one second later
//
// Package dist writes the report ([Report.Send]) when InitProcessGroup fails, when a
// worker of Spawn fails, when Spawn fails before the worker starts, and when a call
// fails, before the call returns, since the program may then exit. It removes the report
// ([TakeBack]) when InitProcessGroup or the worker succeeds after all. A report replaces
// the last one. It is written to a temporary file, whose name starts with the report's
// name, and renamed, so readers never see part of it. If no launcher names a file,
// nothing is written. A report that cannot be written is dropped: the program gets the
// error in any case.
//
// The report of a worker is written before its peers learn of the failure. So a launcher
// that sees a rank end because another failed finds the report of that other,
// unless its process died without one (killed by a signal, os.Exit, a panic outside of
// the worker) or is stuck. A report of the rank's own process alone is no failure: its exit
// status determines whether the rank failed. If another process has written it, whose status a
// pipe may hide, every report but one of a failed call is a failure. Programs that do not use
// goccl never write one.
//
//	{"version":1, "rank":0, "pid":4181, "time":"2026-11-20T14:32:47.123502031+01:00",
//	 "kind":"error", "message":"ccl: all_reduce by direct, call 7, rank 0: aborted by rank 2: ...",
//	 "because":"aborted", "ranks":[2]}
//
// The frames of a panic are parsed from the stack that the Go runtime writes. [ParseStacks] reads
// such texts, also those that a launcher collects from a rank which cannot report any more.
//
// If ranks disagree on a call, because is "mismatch" on all of them, or "unequal" if they disagree
// on what a call compares, and ranks are those whose value is not that of most. If a call gives all
// ranks the error of some, because is "shared", and ranks are these, all if all failed alike.
//
// All ranks of a group that failed by a timeout report the same ranks. What the rank's own call
// waited for is in awaited, from which the launcher finds ranks that waited for each other in a
// circle.
//
// The root cause of a job is the earliest report without because, or whose ranks include its own,
// or a rank that died without one; otherwise the ranks that other reports name and that have none
// of their own. internal/launcher has the whole rule.
//
// Beside failures a rank tells its launcher, in the file of GOCCL_RESULT_FILE, which build of the
// program it runs and by which transport it has joined the others ([SendBuild] and [SendTransport],
// by InitProcessGroup), that it has left them ([SendLeft]), and a value of the program
// ([SendValue], by package launch).
//
//	{"version":1, "pid":4181, "build":"5a0c6b1f97c24d03", "transport":"shm", "value":{"loss":0.41}}
//
// The launcher tells the ranks of the first one that has ended with status 0 ([Ended]), in the file
// "ended" beside it. Ranks in InitProcessGroup then wait no longer for that rank.
//
// # Concurrency
//
// All functions may be called concurrently. Detect depends only on getenv and, under
// torchrun, Open MPI and MPICH, on /proc; for env:// on the addresses of this node. Of
// two concurrent Sends one wins.
//
// # Failure
//
// Contradictory variables are an [*Error], and so are variables that would need a guess:
// ranks of one node without a key might meet ranks of another job. The error names variables
// and values. That ranks are on several nodes is no error of this package: Apart says why, and
// only a job of goccl run has a key then; not every transport can connect it.
package launchenv
