// Command goccl is the tool for people who configure and compare algorithms.
//
//	goccl explain                    which algorithm does which call, why, and at what cost
//	goccl explain --algorithms       what the registered algorithms can do
//	goccl bench                      how long calls take, beside yardsticks of the same run
//	goccl bench --compare A B        what has changed between two runs
//	goccl bench --sweep FILE         a matrix of measurements, with a report
//	goccl run -n 4 PROGRAM ...       a program as several ranks, each a process
//	goccl doctor                     what this machine allows, and what is in the way
//	goccl doctor --clean             remove what dead jobs have left in /dev/shm
//
// docs/guides/configuration.md shows `goccl explain` at work, docs/guides/benchmarking.md `goccl
// bench`, with the fields of their JSON, and docs/guides/processes.md `goccl run` and `goccl
// doctor`.
//
// # Model
//
// It is package tool with the built-in algorithms. With algorithms of your own, the
// same tool is a program of your own; see package tool.
//
// # Concurrency
//
// `goccl explain` is one run in one goroutine. `goccl bench` hosts the ranks that it
// measures, and nothing else runs beside them. `goccl run` starts processes and waits
// for them.
//
// # Failure
//
// What was asked for goes to standard output, mistakes to standard error. The exit
// status is 0, also where calls would be refused, since saying so is the answer; 1
// if the configuration is wrong or no group can be made of it, if a result that was
// measured is wrong, if nothing could be measured, or if `goccl doctor` finds a
// problem; 80 for flags that make no sense.
// `goccl run` ends as the first rank that failed; docs/guides/processes.md has all its statuses.
package main
