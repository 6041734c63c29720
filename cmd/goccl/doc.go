// Command goccl is the tool for people who configure and compare algorithms.
//
//	goccl explain                    which algorithm does which call, why, and at what cost
//	goccl explain --algorithms       what the registered algorithms can do
//
// docs/configuration.md shows both at work, with the fields of their JSON.
//
// # Model
//
// It is package tool with the built-in algorithms. With algorithms of your own, the
// same tool is a program of your own; see package tool.
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
