// Command goccl is the tool for people who configure and compare algorithms.
//
//	goccl explain                    which algorithm does which call, why, and at what cost
//	goccl explain --algorithms       what the registered algorithms can do
//
// docs/configuration.md shows both at work, with the fields of their JSON.
//
// # Model
//
// `goccl explain` reads the configuration as a program would, from the same file
// and environment, and asks ccl.Settings.Explain about every combination of the
// flags. Nothing is sent: the transport is opened only to learn up to which length
// inputs travel with the synchronisation. That length depends on the cores that
// this process may use, as it does in the program.
//
// The command knows the built-in algorithms. A program with algorithms of its own
// can print the same by ccl.Settings.Explain.
//
// # Concurrency
//
// One command is one run in one goroutine.
//
// # Failure
//
// What was asked for goes to standard output, mistakes to standard error. The exit
// status is 0, also where calls would be refused, since saying so is the answer; 1
// if the configuration is wrong or no group can be made of it; 80 for flags that
// make no sense.
package main
