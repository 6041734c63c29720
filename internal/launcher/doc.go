// Package launcher starts the ranks of a job as processes of this machine and manages them until
// all have ended, for `goccl run` and package launch.
//
// # Model
//
// A Spec is a program and a number of ranks. Every rank is a process with its own process group,
// which contains everything it starts. A rank has finished when its process has ended and its
// group is empty: other processes of the group get SIGTERM when the rank's process ends, and
// SIGKILL after the grace period. A job has ended when all its ranks have finished.
//
// The keeper is this program, started again in its own process group. It knows the groups of the
// ranks and reads from a pipe whose other end the launcher holds. If the launcher dies in any way,
// the pipe breaks, and the keeper kills the groups:
//
//	launcher ──┬── keeper         reads the ranks' process ids from a pipe; when that
//	           │                  breaks, kills the remaining groups
//	           ├── rank 0 ── ...  ┐ first this program again, which sends its process
//	           └── rank 1 ── ...  ┘ id to the keeper and executes the rank's program
//
// The keeper has a rank's process id, which is also its process group's id, before the first
// instruction of the program runs. So the launcher's death leaves nothing behind at any moment. On
// Linux the ranks themselves, but not their children, also die if launcher and keeper are killed
// together: they request this from the kernel.
//
// A rank inherits its cores from the launcher's thread, if package cores finds enough. The launcher
// holds their locks until the job has ended. While a job without cores of its own runs beside it,
// the launcher lets its ranks run on all cores.
//
// If ranks are killed before all have joined, their shared memory is removed when the job ends, by
// the launcher or the keeper: its name starts with the job's name. If flight recorders are wanted,
// the launcher opens that memory as soon as it finds it, and writes the records to a file when the
// job has failed. Memory does both. The launcher also opens that of other jobs, after ten seconds.
// It reads the records every second, to warn of a rank that makes the others wait.
//
// Both processes are started with a name that Reexecuted recognises, so a program that runs jobs
// must call Reexecuted first.
//
// Output goes through the launcher line by line, also to files if Spec.Files names a directory, or
// only to files. A line without an end is shown after a second. The last lines of a rank and the
// message of a crash are kept for the error of the job.
//
// # Several nodes
//
// Each node of a job can have a launcher of its own (Spec.Nodes). The one of node 0 listens until
// all have come and proved that they know the job's secret, and gives each its ranks. From then on
// it decides: the others tell it how their ranks are, as soon as one of any node has failed at
// every moment, and it finds who is to blame among all, as for one node. It tells them when to end
// their ranks, and in the end how the job has ended, which is their error and exit status. Times of
// reports are moved to its clock.
//
// The end of a connection is the loss of a node: ranks of node 0 and of all others are ended then,
// those of the lost node by its keeper. A host that is silent for 10 s is lost as well; on other
// systems than Linux not while messages to it are on their way.
//
// # Concurrency
//
// Jobs may run at the same time. Run locks its goroutine to its thread, and waits for the
// processes that it has started, not for other children of this process. Orphans of ranks that
// become its children, if it is process 1 of a container, are waited for by their group when the
// rank ends; and at any time, in any group, if Spec.OwnsChildren. One goroutine may remain: one
// that reads standard input, if that is a terminal.
//
// # Failure
//
// A rank fails if its status is not 0 or a signal ends it, or if another process has reported its
// failure, as behind a pipe that ends with status 0; or if that one has vanished, or still runs and
// has not left the others. The job fails with its first rank: the groups
// of the others get SIGTERM and, after the grace period, SIGKILL. The end of Run's context ends
// the job in the same way. Run then returns an *EndedError. It names the root cause, which is
// often not the first rank to end: ranks that use goccl report why they fail (see package
// internal/launchenv), each to a file in a directory of the job; function blame evaluates the
// reports. Before the SIGTERM a rank to blame has half a second to end by itself, since its end
// and its output are the best information. If it failed by itself, the others have 0.1 s to fail
// alike. SIGCONT follows each signal, since a stopped process would not end.
//
// A rank that others have waited for, and that handles SIGQUIT, gets it in place of SIGTERM, since
// Go programs then write their stacks. The launcher keeps these for the error and shows none of
// them; the status with which that rank ends is not its own.
//
// A rank that ends with status 0 fails nothing, but ranks that would wait for it in
// dist.InitProcessGroup find its end in the job's directory, and fail.
//
// Restarts runs the job again after a failure that may not repeat. Each attempt has a name, and so
// reports and shared memory, of its own. On several nodes the launcher of node 0 tells the others
// with the end of the job that a restart follows, and all meet again.
//
// A signal to the launcher is forwarded to all groups; after the grace period, or at a second
// interrupt, they are killed. SIGUSR1 and SIGUSR2 go to the processes that handle them, and end
// nothing. If the job cannot start, the error is a *RefusedError. Both errors have an exit status
// for the program.
package launcher
