// Package launcher starts the ranks of a job as processes of this machine and looks
// after them until all have ended: it is what stands behind `goccl run`.
//
// # Model
//
// A Job is a program and the number of its ranks. Every rank is a process with a
// process group of its own, and whatever it starts belongs to that group. A rank is
// over when its process has ended and its group is empty: what its process leaves
// behind is asked to end, and killed after the grace period. A job is over when all
// its ranks are.
//
// Besides the ranks there is the keeper, a second image of this program in a process
// group of its own. It knows the groups of the ranks and holds one end of a pipe
// whose other end the launcher holds. If the launcher dies, however that may come
// about, the pipe breaks, and the keeper kills the groups:
//
//	launcher ──┬── keeper         reads the ranks' names from a pipe; when that breaks,
//	           │                  kills the groups of those that are left
//	           ├── rank 0 ── ...  ┐ first an image of this program, which tells the keeper
//	           └── rank 1 ── ...  ┘ its name, goes to its cores and becomes the program
//
// A rank's name, which is its process id and that of its group, is with the keeper
// before the first instruction of the program runs. So there is no moment in which
// the death of the launcher could leave anything behind. On Linux the ranks
// themselves, but not what they have started, would also die if launcher and keeper
// were killed together: they ask the kernel for it.
//
// Ranks that are killed before all of them have joined leave a segment in /dev/shm. It
// has a name that begins with that of the job, and launcher or keeper removes it in the
// end.
//
// Both images are started with a name that Reexecuted knows, so a program that runs
// jobs has to call that first.
//
// Output goes through the launcher by line, or to files directly. A rank's last lines
// are kept in any case, for the error of the job.
//
// # Concurrency
//
// One Job.Run at a time in a process, in one goroutine, to which it holds the
// thread. While it runs, nothing else in the process may wait for children: Run waits
// for all of them, also for orphans: on Linux it becomes the parent of what ranks leave
// behind, as process 1 of a container is. A goroutine is left behind that reads standard
// input, if that is a terminal, and one that waits for children, if somebody has killed
// the keeper.
//
// # Failure
//
// A rank fails if it ends with another status than 0, or by a signal, and a job when its
// first rank does: the groups of the others get SIGTERM and, after the grace period,
// SIGKILL. What Run returns then is an *EndedError. It names the root cause, which often
// is another rank than the first to end: ranks that use goccl report why they fail (see
// package internal/launchenv), each to a file in a directory of the job, and blame has the
// rules. Before the SIGTERM a rank that is to blame gets half a second to end by itself,
// since its own end and its output say most. A
// signal for the launcher is handed on to all groups; with the grace period, or with
// a second interrupt, they are killed. If the job cannot even begin, that is a
// *RefusedError. Both know the exit status that they are for a program.
package launcher
