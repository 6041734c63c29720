// Package launchenv says whether a launcher started this process as one of the
// ranks of a job, as which of them, and which job that is. It reads what
// launchers put into the environment.
//
// # Model
//
// [Detect] asks for six launchers in this order, and the first whose variables
// are there decides:
//
//	goccl run   GOCCL_SHM_NAME, GOCCL_SHM_RANK, GOCCL_SHM_SIZE (S2.24): any of
//	            them, and then all three
//	env://      RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as a person sets them for
//	            torch's init method of that name, and no TORCHELASTIC_RUN_ID
//	torchrun    RANK, WORLD_SIZE and TORCHELASTIC_RUN_ID
//	Open MPI    OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE
//	PMI         PMI_RANK and PMI_SIZE: MPICH's and Intel's mpiexec, srun --mpi=pmi2
//	Slurm       SLURM_STEP_ID, SLURM_PROCID and SLURM_STEP_NUM_TASKS: srun
//
// So what a person or an inner launcher sets goes before what an outer one left
// behind, but for an inner one that stands further down in the list.
//
// A process is no rank of a job, and Detect returns nil, if
//
//   - none of these are there,
//   - only some of a launcher's are (but for the first one's): a stray WORLD_SIZE,
//     or the shell of sbatch, which has SLURM_PROCID and SLURM_NTASKS and is one
//     process,
//   - the launcher that decides has started one rank: mpirun -n 1. Programs that know
//     nothing of ranks are started like that, and srun starts whatever runs on a
//     cluster. Not so goccl run -n 1: nobody sets our variables who does not mean it,
//     and who counts up the ranks to compare them begins with one.
//
// The ranks of a job find each other by its key. It holds what the launcher
// says about the job, equal for all ranks and for no other job:
//
//	goccl run   the name; and GOCCL_SHM_SECRET, which goccl run makes for each job, keeps
//	            jobs of one name apart. Ranks that are started by hand need none, and then
//	            the name has to be the job's own
//	env://      MASTER_PORT and the network namespace, where MASTER_ADDR is an address of
//	            this node. Rank 0 holds the port while the job joins, so that rank 0 of a
//	            second job fails; other ranks of that one are not told apart
//	torchrun    TORCHELASTIC_RUN_ID, MASTER_ADDR, MASTER_PORT,
//	            TORCHELASTIC_RESTART_COUNT and the network namespace. Without
//	            --standalone the id is "none" and the port always the same; then it is
//	            the port, held by torchrun itself, that keeps two jobs from being there
//	            at once, which it can only within one network namespace: containers may
//	            share /dev/shm and not the network
//	Open MPI    PMIX_NAMESPACE, and the address of mpirun's own server in
//	            PMIX_SERVER_URI2, 21, 3, 4, 41 and so on, with the network namespace:
//	            version 4 makes PMIX_NAMESPACE from 16 bits of a hash, and version 5
//	            from a host name and a process id. Where there is no address the pid
//	            namespace takes its place
//	PMI         PMI_JOBID with SLURM_RESTART_COUNT where srun says it; and the
//	            hydra_pmi_proxy among the ancestors of the process, by pid, start time
//	            and namespace of pids. There is one for each job and node, and MPICH
//	            puts nothing into the environment that would do: the job's name is
//	            known only to who speaks PMI, which would make the process an MPI one
//	Slurm       SLURM_JOB_ID, SLURM_STEP_ID, SLURM_RESTART_COUNT
//
// # Reports
//
// A rank that fails tells its launcher why. A launcher names a file for it, another
// one for every rank, in a directory that exists:
//
//	goccl run   GOCCL_ERROR_FILE: one [Report] as JSON
//	torchrun    TORCHELASTIC_ERROR_FILE: what torch's own ErrorHandler would write. It
//	            takes the least time in seconds for the cause; so a consequence gets a
//	            second more
//
// Package dist writes it ([Report.Send]) when InitProcessGroup fails, when a worker of
// Spawn fails, when Spawn fails before the worker starts, and when a call fails, before
// the program hears of that, since it may end by it at once; it removes it
// ([TakeBack]) when InitProcessGroup or the worker succeeds after all. The last report
// counts. It is written to a temporary file, whose name begins with that of the report,
// and renamed: a reader finds all of it or nothing. Nothing is written where no
// launcher names a file. A report that cannot be written is dropped: the error goes to
// the program in any case.
//
// The report of a worker is written before the peers hear of its failure. So a launcher
// that sees a rank end because another has failed finds the report of that other,
// unless its process died without one (killed by a signal, os.Exit, a panic outside of
// the worker) or is stuck. A report alone is no failure: the exit status of the process
// says whether its rank failed. Programs that do not use goccl never write one.
//
//	{"version":1, "rank":2, "pid":4183, "time":"2026-11-20T14:32:47.123456789+01:00",
//	 "kind":"panic", "message":"panic: runtime error: index out of range [3] with length 3",
//	 "frames":[{"function":"main.step","file":"/home/ada/train/step.go","line":41}]}
//	{"version":1, "rank":0, "pid":4181, "time":"2026-11-20T14:32:47.123502031+01:00",
//	 "kind":"error", "message":"ccl: all_reduce by direct, call 7, rank 0: aborted by rank 2: ...",
//	 "because":"aborted", "ranks":[2]}
//
// The root cause of a job is the earliest report without because, or a rank that died
// without one; else the ranks that reports with because name and that have none of their
// own. cmd/goccl/internal/launcher has the whole rule.
//
// # Concurrency
//
// Detect may be called by anyone at any time. It depends on nothing but getenv
// and, under torchrun, Open MPI and MPICH, on /proc; for env:// on the addresses of this node. So may Send, TakeBack and
// ReadReport; of two that Send at once one wins.
//
// # Failure
//
// What is there and cannot be is an [*Error], and so is what would take a guess:
// ranks without a key might meet those of another job, and ranks on several
// nodes would wait for each other. The error names variables and values.
package launchenv
