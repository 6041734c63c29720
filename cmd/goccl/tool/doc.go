// Package tool is the program goccl without built-in algorithms and transport mpi, for programs
// that add their own, or that must be static. Such a program is:
//
//	package main
//
//	import (
//		_ "github.com/goccl/goccl/algorithms"
//		"github.com/goccl/goccl/cmd/goccl/tool"
//
//		_ "example.com/mine/doubling"
//	)
//
//	func main() { tool.Main() }
//
// # Model
//
// `goccl explain` loads the configuration as a program would, and calls
// config.Settings.Explain for every combination of the flags. It sends nothing and starts
// nothing. Of the transport it only needs the longest input that travels with the
// synchronisation; between goroutines that depends on the cores that this process may use.
//
// `goccl config` checks configuration files by config.Check, and prints config.Schema for editors.
//
// `goccl bench` (see docs/guides/benchmarking.md) prints each case before it measures the
// next one. An interrupt ends it between two calls; it prints what it has measured. Its ranks
// are goroutines; or, with the transport shm, processes that it starts as `goccl run` does; or the
// processes of the launcher that has started it, of which rank 0 prints.
//
// `goccl run` starts a program as several ranks; see internal/launcher. For that it also
// starts the goccl program itself, under other names that Main checks first. So your
// program must do nothing before Main.
//
// `goccl doctor` (see docs/reference/doctor.md) reports on the machine, and leaves nothing
// behind. With --clean it only removes the segments of dead jobs of this user, by
// shm.Leftover.Remove.
//
// `goccl inspect` (see docs/guides/inspecting.md) reads flight recorders: the files in a directory,
// or the memory of a running job, which it maps for reading only.
//
// The tool knows the algorithms of ccl.DefaultRegistry: those that the program imports.
//
// # Concurrency
//
// `goccl bench` and `goccl doctor` host the ranks that they measure with dist.Spawn, one group at a
// time. `goccl run`, and `goccl bench` with the transport shm, wait for the processes that they
// start.
//
// # Failure
//
// Results go to standard output, errors to standard error. The exit status is 0 on
// success; 2 for a mistake in the command line; and 1 if
//
//   - the configuration or an environment variable is invalid, or allows no group,
//   - `goccl config check` finds a mistake; warnings do not count,
//   - `goccl explain` shows a row that is refused, or that no rule matches,
//   - a measured result is wrong, nothing could be measured, or a cell of a sweep failed,
//   - `goccl doctor` finds a problem that keeps ranks from working, or `--clean` fails.
//
// `goccl run` ends with the status of the rank to blame; docs/reference/processes.md has all
// its statuses.
package tool
