// Package tool is the program goccl, without algorithms of its own, so that a
// program with algorithms of your own can have it too. This is all of it:
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
// `goccl explain` reads the configuration as a program would, from the same file
// and environment, and asks ccl.Settings.Explain about every combination of the
// flags. Nothing is sent, and nothing started: of the transport it only needs to know up
// to which length inputs travel with the synchronisation. Between goroutines that
// depends on the cores that this process may use, as it does in the program.
//
// `goccl bench` times calls (see docs/guides/benchmarking.md): of what it is asked for it
// makes cases, has each measured, and prints it before the next begins, so that
// nothing else happens while something is timed. An interrupt ends it between two
// calls, with all that was measured until then. It hosts the ranks itself, and refuses
// to be one of a launcher's.
//
// `goccl run` starts a program as several ranks; package launch has all of it. For that
// it also starts the program goccl itself again, under other names, which Main answers
// to before it looks at anything else. So a program of your own does nothing before Main.
//
// `goccl doctor` (see docs/guides/processes.md) says what it finds about the machine, each
// thing with a verdict: about cores, memory and /dev/shm, what ranks as processes need
// of the kernel, a launcher, the configuration with two calls that it explains, and
// yardsticks. What it tries leaves nothing behind. With --clean it removes the segments
// of dead jobs of this user, as shm.Leftover.Remove does, and does nothing else.
//
// The tool knows the algorithms of ccl.DefaultRegistry: those that the program imports.
//
// # Concurrency
//
// `goccl explain` is one run in one goroutine. `goccl bench` hosts the ranks that it
// measures with dist.Spawn, one group at a time, and so does `goccl doctor`. `goccl run`
// waits for all processes that this one starts; nothing else may start any.
//
// # Failure
//
// What was asked for goes to standard output, mistakes to standard error. The exit
// status is 0, also where calls would be refused, since saying so is the answer; 1
// if the configuration is wrong or no group can be made of it, if a result that was
// measured is wrong, if nothing could be measured, if `goccl bench --check` finds what
// is slower than its baseline allows, or if `goccl doctor` finds a problem that keeps
// ranks from working; 80 for flags that make no sense.
// `goccl run` ends as the rank that is to blame; docs/guides/processes.md has all its statuses.
package tool
