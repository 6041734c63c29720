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
// flags. Nothing is sent: the transport is opened only to learn up to which length
// inputs travel with the synchronisation. That length depends on the cores that
// this process may use, as it does in the program.
//
// It knows the algorithms of ccl.DefaultRegistry: those that the program imports.
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
package tool
