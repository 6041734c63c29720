// Package launch starts a program as several ranks, each a process of this machine, and returns how
// each of them ended: `goccl run` as a library.
//
// # Model
//
// A [Job] is a program and a number of ranks. By default the program is this one. Its ranks start
// with main, as every process does, so main asks [IsRank] which part is its own:
//
//	func main() {
//		if launch.IsRank() { // a process that Run, below, has started
//			if err := dist.Spawn(train); err != nil {
//				log.Fatal(err)
//			}
//			return
//		}
//		job := launch.Job{Ranks: 4, Stdout: os.Stdout, Stderr: os.Stderr}
//		ranks, err := job.Run(context.Background())
//		...
//	}
//
// [Job.Run] returns when all processes of all ranks have ended. The status of a rank's process
// decides whether it failed. The first rank that fails ends the job: the others get SIGTERM and,
// after Job.Grace, SIGKILL. So does the end of the context. With Job.MaxRestarts all start anew
// after a failure. A rank can return a value ([Return]).
//
// Ranks see the variables that `goccl run` sets, so package dist and everything else that runs
// under `goccl run` runs here too, and a program with the main above also runs as ranks of `goccl
// run`, torchrun, mpirun or srun: IsRank is true there. Ranks have an empty standard input. By
// default each is pinned to cores of its own, if there are enough.
//
// Run refuses to start processes without end, and starts none
//
//   - in a rank ([ErrIsRank]): main has not asked IsRank, or the ranks of a launcher would start
//     ranks of their own,
//   - while packages are initialized ([ErrInit]), in an init function or for a package variable:
//     every rank would do the same before its main,
//   - in a test binary without Job.Args, since each rank would run all tests. A test lets TestMain
//     do a rank's work if IsRank is true, and sets Args to []string{}; or it sets Args to
//     -test.run=^TestName$, and TestName asks IsRank.
//
// Signals are the program's own. Ranks do not get those of the terminal: signal.NotifyContext makes
// an interrupt end the job in order.
//
// If this process is killed in any way, another process, goccl-keeper, kills the ranks and removes
// their shared memory. The keeper is this program once more, but its main never runs: the
// initialization of this package does the keeper's work and ends it. So packages that are
// initialized before this one, since they do not import it, are initialized in the keeper as well.
//
// # Concurrency
//
// Jobs may run at the same time. Run keeps its goroutine on its thread. Stdout and Stderr get one
// line at a time, from other goroutines; they may be the same. The program may start processes of
// its own meanwhile, but must not wait for all children at once (wait4 of -1) or ignore SIGCHLD:
// the statuses of ranks would be lost.
//
// # Failure
//
// Run returns a *JobError if a rank failed or the context ended. It names the rank that made the
// job fail, with the cause as the rank has reported it, or its crash or last output, like `goccl
// run`. Any other error means that no rank was started, or that Stdout or Stderr cannot be written.
// Run returns errors.ErrUnsupported on systems without process groups.
package launch
