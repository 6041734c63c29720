// Command peers times all-reduce (float32, sum, in place) and barriers beside Open
// MPI, MPICH and torch.distributed's gloo, on this machine and in turns, and shows
// how many times as long they take as goccl.
//
//	go run ./benchmarks/peers -ranks 2,4 -passes 5
//
// It installs nothing: it says which libraries are missing and how to get them, and
// compares with those that are there. It prints a table, and writes peers.csv and
// peers.png into the working directory.
//
// # Model
//
// A contestant is a library with one of its settings: "default" is as it comes,
// "tuned" is with the settings that have helped it most. Everybody follows the same
// rule. In each round every rank rewrites its input, all meet, twice, so that none
// is still on its way, and the operation is timed on every rank; all meet again, so
// that none rewrites while another is timed. A round counts as long as its slowest
// rank took, and the results of all rounds are verified outside the timed part. A
// contestant makes as many rounds as fit into a budget, for one size after the
// other; then it is the next contestant's turn. Several passes over all contestants
// follow each other, so that whatever the machine does disturbs all alike, and the
// medians over the passes are what is shown.
//
// The ranks are not the same thing: those of the peers are processes, which have to
// carry data from one address space into another, and those of goccl are goroutines
// of one process, which read each other's buffers. README.md says what follows.
//
// # Concurrency
//
// One contestant runs at a time. Each runs in processes of its own, but for goccl,
// whose ranks are goroutines of this one.
//
// # Failure
//
// Each process gets a deadline. One that misses it is killed with all that it
// started, and a peer that failed is named and left out of the rest. The exit status
// is 0 if everything that is installed was compared and all results were right, 1
// if not, or if no peer is installed, and 2 for flags that make no sense.
package main
