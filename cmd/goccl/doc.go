// Command goccl is the tool for people who configure and compare algorithms.
//
//	goccl explain                    which algorithm does which call, why, and at what cost
//	goccl explain --algorithms       what the registered algorithms can do
//	goccl config check [FILE...]     all mistakes of ccl.yaml
//	goccl config schema              the JSON schema of ccl.yaml, for editors
//	goccl bench                      how long calls take, beside yardsticks of the same run
//	goccl bench --compare A B        what has changed between two runs
//	goccl bench --sweep FILE         a matrix of measurements, with a report
//	goccl run -n 4 PROGRAM ...       a program as several ranks, each a process
//	goccl inspect [DIR|JOB]          where the ranks of a failed or running job are
//	goccl doctor                     what this machine allows, and what is in the way
//	goccl doctor --clean             remove what dead jobs have left in /dev/shm
//	goccl help bench                 the flags of a command
//	goccl version                    the version of the program, as --version
//
// docs/guides/command.md has how to install it, and its exit statuses; docs/guides/configuration.md
// shows `goccl explain` and `goccl config` at work, docs/guides/benchmarking.md `goccl bench`, with
// the fields of their JSON, and docs/guides/processes.md `goccl run`. docs/reference/processes.md
// and docs/reference/doctor.md have the details.
//
// # Model
//
// The command is package tool with the built-in algorithms and transport mpi, for which it needs
// glibc on Linux; see there for a tool with your own algorithms, or without MPI, and for the exit
// status.
package main
